package argument

import (
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/bucket"
	"cellserver/internal/limiter/window"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
	"cellserver/internal/wire/glob"
)

// fixedWindow is the Request of CL.FIXEDWINDOW key max_count period [quantity] [COUNTDENIED].
func fixedWindow(q *store.Request, db uint16, args [][]byte, _ funnel.Reading, _ *[]byte) error {
	const usage = "Usage: cl.fixedwindow <key> <max_count> <period> [<quantity>] [COUNTDENIED]"
	return readWindow(q, db, args, limiter.FixedWindow, usage)
}

// slidingWindow is the Request of CL.SLIDINGWINDOW key max_count period [quantity] [APPROX] [COUNTDENIED].
func slidingWindow(q *store.Request, db uint16, args [][]byte, _ funnel.Reading, _ *[]byte) error {
	const usage = "Usage: cl.slidingwindow <key> <max_count> <period> [<quantity>] [APPROX] [COUNTDENIED]"
	return readWindow(q, db, args, limiter.SlidingWindow, usage)
}

func readWindow(q *store.Request, db uint16, args [][]byte, kind limiter.Kind, usage string) error {
	const most = 7 // with all that is optional
	if len(args) < 4 || len(args) > most {
		return reply.Cell(usage)
	}
	options := 4
	if len(args) > options && windowOption(args[options], kind) == none {
		options++ // behind the quantity
	}
	n := [3]int64{2: 1} // max_count, period, quantity
	if err := Numbers(n[:options-2], args[2:]); err != nil {
		return err
	}
	q.Rule = limiter.Rule{Kind: kind, Unit: funnel.WholeSeconds}
	rule := &q.Rule
	for _, arg := range args[options:] {
		switch windowOption(arg, kind) {
		case approx:
			rule.Kind = limiter.ApproxWindow
		case countDenied:
			rule.Flags |= limiter.CountDenied
		default:
			return reply.Cell(usage)
		}
	}
	var err error
	if rule.Kind == limiter.SlidingWindow {
		rule.Window, err = window.NewExactLimit(rule.Unit, n[0], n[1])
	} else {
		rule.Window, err = window.NewLimit(rule.Unit, n[0], n[1])
	}
	if err != nil {
		return reply.Cell(err.Error())
	}
	q.Key, q.Quantity = store.Key{DB: db, Name: args[1]}, n[2]
	return nil
}

// option is one of a window's.
type option uint8

const (
	none option = iota
	approx
	countDenied
)

// windowOption reads an option that a kind of window has.
func windowOption(arg []byte, kind limiter.Kind) option {
	switch {
	case glob.IsFolded(arg, "countdenied"):
		return countDenied
	case kind == limiter.SlidingWindow && glob.IsFolded(arg, "approx"):
		return approx
	}
	return none
}

// take is the Request of CL.BUCKET TAKE key capacity [n].
func take(q *store.Request, db uint16, args [][]byte, _ funnel.Reading, _ *[]byte) error {
	if len(args) < 4 || len(args) > 5 {
		return reply.Cell("Usage: cl.bucket take <key> <capacity> [<n>]")
	}
	n := [2]int64{1: 1} // capacity, how many
	if err := Numbers(n[:len(args)-3], args[3:]); err != nil {
		return err
	}
	limit, err := bucket.NewLimit(n[0])
	if err != nil {
		return reply.Cell(err.Error())
	}
	q.Key = store.Key{DB: db, Name: args[2]}
	q.Rule = limiter.Rule{Kind: limiter.Bucket, Bucket: limit}
	q.Quantity = n[1]
	return nil
}
