package redistest

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Migration moves a slot from one master to another in steps, as redis-cli --cluster reshard does: Begin, Move until no key
// is left, Finish. Between the steps the slot is at both.
type Migration struct {
	Slot     int
	From, To *Process

	cluster      *ClusterNodes
	fromID, toID string
}

// MigrateSlot prepares a migration. Nothing has happened before Begin.
func (c *ClusterNodes) MigrateSlot(slot int, from, to *Process) *Migration {
	return &Migration{Slot: slot, From: from, To: to, cluster: c}
}

// Begin tells both servers of the migration: keys that are not at From are asked for at To (ASK).
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

// Move takes at most count keys over, and returns how many: 0 once none are left.
func (m *Migration) Move(ctx context.Context, count int) (int, error) {
	keys, err := m.From.client.ClusterGetKeysInSlot(ctx, m.Slot, count).Result()
	if err != nil || len(keys) == 0 {
		return 0, err
	}
	args := []any{"MIGRATE", "127.0.0.1", m.To.port, "", 0, 5000}
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

// Finish gives the slot to To, and tells all masters, so that they need not be told by one another.
func (m *Migration) Finish(ctx context.Context) error {
	for _, p := range append([]*Process{m.To, m.From}, m.cluster.All()...) {
		err := setSlot(ctx, p, m.Slot, "NODE", m.toID)
		if err != nil && (p == m.To || p == m.From) { // replicas and nodes that are away refuse, and hear of it
			return err
		}
	}
	return nil
}

// Run is all steps.
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
