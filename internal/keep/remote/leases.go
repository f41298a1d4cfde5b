package remote

import (
	"context"
	"time"

	"cellserver/internal/keep/remote/ahead"
	"cellserver/internal/keep/remote/engine"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
)

// giveBackNowAndThen gives back what was taken ahead for longer than it may be kept, and all of it at the end.
func (s *Store) giveBackNowAndThen(maxTime time.Duration) {
	tick := time.NewTicker(max(maxTime/8, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.giveBack(s.known.Return(false))
		case <-s.stop:
			s.giveBack(s.known.Return(true))
			return
		}
	}
}

// giveBack sends what is given back, at most one pipeline a server at a time. What does not arrive drains.
func (s *Store) giveBack(cuts []ahead.Cut) {
	calls := map[*servers.Server][]*servers.Call{}
	for _, c := range cuts {
		key := s.KeyPrefix + c.Name
		if server, err := s.Pool.Of(context.Background(), key); err == nil {
			calls[server] = append(calls[server], s.scripts.CutCall(key, c.EndNs, c.ToNs))
		}
	}
	ctx, cancel := s.timeout(context.Background())
	defer cancel()
	for server, all := range calls {
		for len(all) > 0 {
			n := min(len(all), engine.MaxCalls)
			s.Pool.Send(ctx, server, all[:n], 0)
			all = all[n:]
		}
	}
	for _, c := range cuts {
		s.known.Learn(s.KeyPrefix+c.Name, limiter.Lowers, nil, 0)
	}
}
