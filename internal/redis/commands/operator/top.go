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

// topCall is what CL.TOP [REQUESTED|LIMITED] [COUNT n] [WITHNAMES] asks for.
type topCall struct {
	ranking   topkeys.Ranking
	count     int64
	withNames bool
}

// top replies an array for each key, or a map WITHNAMES. Clients read arrays by position, also in RESP3,
// which many choose by themselves: so another number is only in the map.
func (k handlers) top(c execute.Call, _ store.Walker, args [][]byte) error {
	call, err := readTop(args[1:])
	if err != nil {
		return err
	}
	entries := k.Records.TopKeys.Top(call.ranking, c.Now(), int(call.count))
	c.Reply().Array(len(entries))
	for i := range entries {
		if call.withNames {
			replyNamed(c.Reply(), &entries[i])
		} else {
			replyInOrder(c.Reply(), &entries[i])
		}
	}
	return nil
}

// readTop also takes ASKED and DENIED, older names of the rankings.
func readTop(rest [][]byte) (call topCall, err error) {
	call.count = 10
	if len(rest) > 0 {
		switch glob.Fold(rest[0]) {
		case "requested", "asked":
			rest = rest[1:]
		case "limited", "denied":
			call.ranking, rest = topkeys.Limited, rest[1:]
		}
	}
	for len(rest) > 0 {
		switch word := glob.Fold(rest[0]); {
		case word == "withnames":
			call.withNames, rest = true, rest[1:]
		case word == "count" && len(rest) > 1:
			n, ok := resp.ParseInt(rest[1])
			if !ok || n < 1 || n > topkeys.Counters {
				return call, reply.Error("ERR COUNT must be from 1 to " + strconv.Itoa(topkeys.Counters))
			}
			call.count, rest = n, rest[2:]
		default:
			return call, reply.ErrSyntax
		}
	}
	return call, nil
}

func replyInOrder(w *resp.Writer, e *topkeys.Entry) {
	w.Array(5)
	w.BulkString(e.Name)
	w.Double(roundRate(e.CallsPerSecond))
	w.Double(roundShare(e.Share))
	w.Double(roundRate(e.Error))
	w.Int(int64(e.DB))
}

func replyNamed(w *resp.Writer, e *topkeys.Entry) {
	w.Map(8)
	w.Pair("key", e.Name)
	w.BulkString("key_is_cut")
	w.Bool(e.Cut)
	w.BulkString("database")
	w.Int(int64(e.DB))
	w.BulkString("share")
	w.Double(roundShare(e.Share))
	w.BulkString("calls_per_second")
	w.Double(roundRate(e.CallsPerSecond))
	w.BulkString("calls_per_second_error")
	w.Double(roundRate(e.Error))
	recent := func(name string, rate float64) {
		w.BulkString(name)
		if e.IsRecent {
			w.Double(roundRate(rate))
		} else {
			w.Null()
		}
	}
	recent("recent_calls_per_second", e.Recent)
	recent("recent_calls_per_second_error", e.RecentError)
}

func roundRate(perSecond float64) float64 { return math.Round(perSecond*1000) / 1000 }

func roundShare(x float64) float64 { return math.Round(x*10_000) / 10_000 }
