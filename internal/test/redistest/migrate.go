package redistest

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Migration moves a slot between masters step by step, as redis-cli --cluster reshard does: Begin, Move until
// no key is left, Finish.
type Migration struct {
	Slot     int
	From, To *Process

	cluster      *ClusterNodes
	fromID, toID string
}

// MigrateSlot prepares a migration without starting it.
func (c *ClusterNodes) MigrateSlot(slot int, from, to *Process) *Migration {
	return &Migration{Slot: slot, From: from, To: to, cluster: c}
}

// Begin announces the migration to both servers: absent keys of From are redirected to To (ASK).
func (m *Migration) Begin(ctx context.Context) (err error) {
	if m.fromID, err = m.From.nodeID(ctx); err != nil {
		return err
	}
	if m.toID, err = m.To.nodeID(ctx); err != nil {
		return err
	}
	if err := setSlot(ctx, m.To, m.Slot, "IMPORTING", m.fromID); err != nil {
		return err
	}
	return setSlot(ctx, m.From, m.Slot, "MIGRATING", m.toID)
}

// Move moves up to count keys and returns their number, 0 at the end.
func (m *Migration) Move(ctx context.Context, count int) (int, error) {
	keys, err := m.From.client.ClusterGetKeysInSlot(ctx, m.Slot, count).Result()
	if err != nil || len(keys) == 0 {
		return 0, err
	}
	args := []any{"MIGRATE", "127.0.0.1", m.To.port, "", 0, 60_000}
	if password := m.To.password(); password != "" {
		args = append(args, "AUTH", password)
	}
	args = append(args, "KEYS")
	for _, key := range keys {
		args = append(args, key)
	}
	if err := m.From.client.Do(ctx, args...).Err(); err != nil && !errors.Is(err, redis.Nil) {
		return 0, fmt.Errorf("redistest: migrate: %w", err)
	}
	return len(keys), nil
}

// Finish assigns the slot to To on all masters, without waiting for gossip.
func (m *Migration) Finish(ctx context.Context) error {
	for _, p := range append([]*Process{m.To, m.From}, m.cluster.All()...) {
		err := setSlot(ctx, p, m.Slot, "NODE", m.toID)
		// replicas and unreachable nodes refuse, and learn by gossip
		if err != nil && (p == m.To || p == m.From) {
			return err
		}
	}
	return nil
}

// Run executes all steps.
func (m *Migration) Run(ctx context.Context) error {
	if err := m.Begin(ctx); err != nil {
		return err
	}
	for {
		moved, err := m.Move(ctx, 100)
		if err != nil {
			return err
		}
		if moved == 0 {
			return m.Finish(ctx)
		}
	}
}

func setSlot(ctx context.Context, p *Process, slot int, how, id string) error {
	if err := p.client.Do(ctx, "CLUSTER", "SETSLOT", slot, how, id).Err(); err != nil {
		return fmt.Errorf("redistest: slot %d %s: %w", slot, how, err)
	}
	return nil
}
