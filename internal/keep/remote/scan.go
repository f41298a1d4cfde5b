package remote

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"cellserver/internal/keep/remote/script"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

var errScansOne = store.Failure{Line: "ERR a store of a cluster cannot be scanned: no server of it has all keys"}

// Size implements store.Remote. It counts foreign keys, too.
func (s *Store) Size(ctx context.Context) (keys int, err error) {
	ctx, cancel := s.timeout(ctx)
	defer cancel()
	masters, err := s.Pool.Masters(ctx)
	if err != nil {
		return 0, failureOf(servers.FailedOf(err))
	}
	for _, m := range masters {
		n, err := m.Client().DBSize(ctx).Result()
		if err != nil {
			return 0, failureOf(readFailed(ctx, err))
		}
		keys += int(n)
	}
	return keys, nil
}

// readFailed describes the error of a command that changes nothing.
func readFailed(ctx context.Context, err error) *servers.Failed {
	f := &servers.Failed{Reason: servers.Network, Text: err.Error()}
	if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
		f.Reason = servers.Timeout
	}
	return f
}

// Scan implements store.Remote. It visits our states under names with the store's prefix, and cuts that off. Any decimal number that is
// a time after now counts as a funnel.
func (s *Store) Scan(ctx context.Context, nowNs int64, cursor uint64, count int, visit func(key store.Key, e store.Entry)) (next uint64, err error) {
	if s.Pool.Clustered() {
		return 0, errScansOne
	}
	reply, serverNs, err := s.call(ctx, "", s.scripts.ScanCall(nowNs, cursor, s.KeyPrefix, count))
	if err != nil {
		return 0, err
	}
	text := ""
	if len(reply) > 0 {
		text, _ = reply[0].(string)
	}
	if next, err = strconv.ParseUint(text, 10, 64); err != nil {
		return 0, store.Failure{Line: "ERR a server returned a cursor that is no number"}
	}
	for at := 1; at+1 < len(reply); at += 2 {
		name, _ := reply[at].(string)
		head, _ := reply[at+1].(string)
		kind, expiresNs, ok := script.ReadHead(head)
		if !ok || expiresNs <= serverNs {
			continue
		}
		visit(store.Key{Name: []byte(strings.TrimPrefix(name, s.KeyPrefix))}, entryAt(kind, expiresNs, nowNs-serverNs))
	}
	return next, nil
}

// entryAt is an Entry by another clock.
func entryAt(k limiter.Kind, expiresNs, byNs int64) store.Entry {
	s := limiter.State{Kind: k, ExpiresNs: expiresNs}
	limiter.Shift(&s, byNs)
	return store.Entry{Kind: k, ExpiresNs: s.ExpiresNs}
}
