package operator

import (
	"math"
	"strconv"

	"cellserver/internal/decide/topkeys"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/glob"
)

const defaultTopKeys = 10

// top is CL.TOP [REQUESTED|LIMITED] [COUNT n]. ASKED and DENIED are older names of the rankings.
func (k handlers) top(c execute.Call, _ store.Walker, args [][]byte) error {
	ranking, n := topkeys.Requested, int64(defaultTopKeys)
	rest := args[1:]
	if len(rest) > 0 {
		switch glob.Fold(rest[0]) {
		case "requested", "asked":
			rest = rest[1:]
		case "limited", "denied":
			ranking, rest = topkeys.Limited, rest[1:]
		}
	}
	switch {
	case len(rest) == 0:
	case len(rest) == 2 && glob.Fold(rest[0]) == "count":
		var ok bool
		if n, ok = resp.ParseInt(rest[1]); !ok || n < 1 || n > topkeys.Counters {
			return reply.Error("ERR COUNT must be from 1 to " + strconv.Itoa(topkeys.Counters))
		}
	default:
		return reply.ErrSyntax
	}
	entries := k.Records.TopKeys.Top(ranking, c.Now(), int(n))
	c.Reply().Array(len(entries))
	for _, e := range entries {
		c.Reply().Array(5)
		c.Reply().BulkString(e.Name)
		c.Reply().Double(round(e.CallsPerSecond, 1000))
		c.Reply().Double(round(e.Share, 10_000))
		c.Reply().Double(round(e.Error, 1000))
		c.Reply().Int(int64(e.DB))
	}
	return nil
}

// round rounds to 1/parts.
func round(x, parts float64) float64 { return math.Round(x*parts) / parts }
