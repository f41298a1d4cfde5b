package command

import (
	"math"
	"strconv"

	"cellserver/internal/resp"
	"cellserver/internal/shard"
	"cellserver/internal/topkeys"
)

// noteKeys counts the requests of a batch, a few of which are sampled for CL.TOP.
func (s *Session) noteKeys(nowNs int64, batch []shard.Request) {
	if !s.scratch.sampler.Skip(len(batch)) {
		s.sampleKeys(nowNs, batch)
	}
}

func (s *Session) sampleKeys(nowNs int64, batch []shard.Request) {
	s.engine.topKeys.Note(&s.scratch.sampler, nowNs, len(batch), func(i int) (db uint16, name []byte, denied bool) {
		q := &batch[i]
		return q.Key.DB, q.Key.Name, q.Result.Limited
	})
}

// TopKeys returns up to n of the keys that are asked or denied most.
func (e *Engine) TopKeys(kind topkeys.Ranking, n int) []topkeys.Entry {
	return e.topKeys.Top(kind, e.config.Now(), n)
}

const defaultTopKeys = 10

// topCommand is CL.TOP [ASKED|DENIED] [COUNT n].
func topCommand(s *Session, args [][]byte) error {
	kind, n := topkeys.Requested, int64(defaultTopKeys)
	rest := args[1:]
	if len(rest) > 0 {
		switch lower(rest[0]) {
		case "asked":
			rest = rest[1:]
		case "denied":
			kind, rest = topkeys.Limited, rest[1:]
		}
	}
	switch {
	case len(rest) == 0:
	case len(rest) == 2 && lower(rest[0]) == "count":
		var ok bool
		if n, ok = resp.ParseInt(rest[1]); !ok || n < 1 || n > topkeys.Counters {
			return replyError("ERR COUNT must be from 1 to " + strconv.Itoa(topkeys.Counters))
		}
	default:
		return errSyntax
	}
	entries := s.engine.TopKeys(kind, int(n))
	s.w.Array(len(entries))
	for _, e := range entries {
		s.w.Array(5)
		s.w.BulkString(e.Name)
		s.w.Double(round(e.CallsPerSecond, 1000))
		s.w.Double(round(e.Share, 10_000))
		s.w.Double(round(e.Error, 1000))
		s.w.Int(int64(e.DB))
	}
	return nil
}

// round leaves as many parts of one as there are.
func round(x, parts float64) float64 { return math.Round(x*parts) / parts }
