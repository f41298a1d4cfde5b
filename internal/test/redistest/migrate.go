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
	cluster      *ClusterNodes
	slot         int
	from, to     *Process
	fromID, toID string
}

// MigrateSlot prepares a migration without starting it.
func (c *ClusterNodes) MigrateSlot(slot int, from, to *Process) *Migration {
	return &Migration{cluster: c, slot: slot, from: from, to: to}
}

// Begin announces the migration to both servers: absent keys are redirected (ASK).
func (m *Migration) Begin(ctx context.Context) (err error) {
	if m.fromID, err = m.from.nodeID(ctx); err != nil {
		return err
	}
	if m.toID, err = m.to.nodeID(ctx); err != nil {
		return err
	}
	if err := setSlot(ctx, m.to, m.slot, "IMPORTING", m.fromID); err != nil {
		return err
	}
	return setSlot(ctx, m.from, m.slot, "MIGRATING", m.toID)
}

// Move moves up to count keys and returns their number, 0 at the end.
func (m *Migration) Move(ctx context.Context, count int) (int, error) {
	keys, err := m.from.client.ClusterGetKeysInSlot(ctx, m.slot, count).Result()
	if err != nil || len(keys) == 0 {
		return 0, err
	}
	args := []any{"MIGRATE", "127.0.0.1", m.to.port, "", 0, 60_000, "KEYS"}
	for _, key := range keys {
		args = append(args, key)
	}
	if err := m.from.client.Do(ctx, args...).Err(); err != nil && !errors.Is(err, redis.Nil) {
		return 0, fmt.Errorf("redistest: migrate: %w", err)
	}
	return len(keys), nil
}

// Finish assigns the slot on all masters, without waiting for gossip.
func (m *Migration) Finish(ctx context.Context) error {
	for _, p := range append([]*Process{m.to, m.from}, m.cluster.All()...) {
		err := setSlot(ctx, p, m.slot, "NODE", m.toID)
		// replicas and unreachable nodes refuse, and learn by gossip
		if err != nil && (p == m.to || p == m.from) {
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
