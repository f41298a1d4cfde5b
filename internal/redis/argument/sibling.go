package argument

import (
	"slices"
	"strings"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/calendar"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
	"cellserver/internal/wire/glob"
)

// sibling is a command for kinds other than Funnel: key, the limit's numbers, [quantity], [options].
type sibling struct {
	keyAt        int
	numbers      int
	most         int            // of arguments
	kinds        []limiter.Kind // the first is the default
	options      []string       // of the kinds
	countsDenied bool
	debits       bool // some of the kinds
	unit         funnel.Unit
}

// siblings returns the commands by full name.
func siblings() map[string]*sibling {
	all := map[string]*sibling{}
	for kind := limiter.Funnel + 1; kind < limiter.Kinds; kind++ {
		row := kind.Row()
		command, names := row.FullCommand(), row.Arguments()
		if len(names) == 0 || row.Calendar {
			continue
		}
		s := all[command]
		if s == nil {
			s = &sibling{
				keyAt: 1 + strings.Count(command, "|"), numbers: len(names), countsDenied: row.CountsDenied, unit: row.Unit,
			}
			all[command] = s
		}
		s.debits = s.debits || row.Debits
		s.kinds, s.options = append(s.kinds, kind), append(s.options, row.Option)
	}
	for _, s := range all {
		s.most = s.keyAt + 1 + s.numbers + 1 + len(s.kinds) - 1 + 1 // the options of other kinds, and ATMOST
		if s.countsDenied {
			s.most++
		}
		if s.debits {
			s.most++
		}
	}
	return all
}

// request is the command's Request.
func (s *sibling) request(q *store.Request, db uint16, args [][]byte, _ funnel.Reading, _ *Names) error {
	first := s.keyAt + 1
	options := first + s.numbers
	if len(args) < options || len(args) > s.most {
		return reply.ErrArity
	}
	if len(args) > options && !s.isOption(args[options]) {
		options++ // after the quantity
	}
	var n [limiter.MaxArguments + 1]int64
	n[s.numbers] = 1 // the quantity
	if err := Numbers(n[:options-first], args[first:]); err != nil {
		return err
	}
	limit := limiter.Spec{Kind: s.kinds[0], Unit: s.unit}
	copy(limit.Numbers[:], n[:s.numbers])
	for _, arg := range args[options:] {
		if s.isCountDenied(arg) && limit.Flags&limiter.CountDenied == 0 {
			limit.Flags |= limiter.CountDenied
		} else if s.isDebit(arg) && limit.Flags&limiter.Debit == 0 {
			limit.Flags |= limiter.Debit
		} else if isAtMost(arg) && limit.Flags&limiter.AtMost == 0 {
			limit.Flags |= limiter.AtMost
		} else if at := s.kindAt(arg); at > 0 && limit.Kind == s.kinds[0] {
			limit.Kind = s.kinds[at]
		} else {
			return reply.ErrSyntax // unknown, or given twice
		}
	}
	return Own(q, db, &limit, args[s.keyAt], n[s.numbers])
}

// Own makes a request of a key by a limit of the caller's own.
func Own(q *store.Request, db uint16, s *limiter.Spec, key []byte, quantity int64) error {
	if err := s.Build(&q.Rule); err != nil {
		return reply.Error("ERR " + err.Error())
	}
	q.Key, q.Quantity = store.Key{DB: db, Name: key}, quantity
	if s.Flags&limiter.AtMost != 0 {
		q.Rule.Flags &^= limiter.CountDenied // what is not taken does not count
	}
	return checkFlags(s, quantity)
}

// checkFlags refuses a debit that its kind does not have, and a debit or a call with ATMOST without units.
func checkFlags(s *limiter.Spec, quantity int64) error {
	switch {
	case s.Flags&(limiter.Debit|limiter.AtMost) == 0:
		return nil
	case s.Flags&limiter.Debit == 0:
		return checkUnits(quantity)
	case s.Flags&limiter.AtMost != 0:
		return reply.Error("ERR DEBIT and ATMOST exclude each other: a debit charges all units")
	case s.Flags&limiter.CountDenied != 0:
		return reply.Error("ERR DEBIT and COUNTDENIED exclude each other: a debit is never denied")
	case s.Kind == limiter.SlidingWindow:
		return reply.Error("ERR an exact sliding window has no DEBIT; add APPROX")
	}
	return checkUnits(quantity)
}

// checkUnits refuses a quantity that no debit, refund or call with ATMOST has.
func checkUnits(quantity int64) error {
	if quantity < 1 {
		return &funnel.ArgumentError{Name: "quantity", Value: quantity, Least: 1}
	}
	return nil
}

func (s *sibling) isOption(arg []byte) bool {
	return s.isCountDenied(arg) || s.isDebit(arg) || isAtMost(arg) || s.kindAt(arg) > 0
}

func (s *sibling) isDebit(arg []byte) bool { return s.debits && isDebit(arg) }

func isDebit(arg []byte) bool { return glob.IsFolded(arg, "debit") }

func (s *sibling) isCountDenied(arg []byte) bool {
	return s.countsDenied && glob.IsFolded(arg, "countdenied")
}

// kindAt returns the kind selected by an option, or -1.
func (s *sibling) kindAt(arg []byte) int {
	return slices.IndexFunc(s.options, func(option string) bool { return option != "" && glob.IsFolded(arg, option) })
}

// quota returns the Request of CL.QUOTA.
func quota(calendars *calendar.Set) Request {
	return func(q *store.Request, db uint16, args [][]byte, _ funnel.Reading, _ *Names) (err error) {
		const least, most = 4, 13
		if len(args) < least || len(args) > most {
			return reply.ErrArity
		}
		limit := limiter.Spec{Kind: limiter.Quota, Unit: funnel.WholeSeconds}
		if limit.Numbers[0], err = Number(args[2]); err != nil {
			return err
		}
		every, ok := calendar.EveryOf(args[3])
		if !ok {
			return reply.ErrSyntax
		}
		options, quantity := args[least:], int64(1)
		if len(options) > 0 && !beginsAsWord(options[0]) {
			if quantity, err = Number(options[0]); err != nil {
				return err
			}
			options = options[1:]
		}
		if err := quotaOptions(&limit, calendars, every, options); err != nil {
			return err
		}
		return Own(q, db, &limit, args[1], quantity)
	}
}

// beginsAsWord tells an option from a quantity.
func beginsAsWord(arg []byte) bool { return len(arg) > 0 && glob.Lower(arg[0]) >= 'a' }

// quotaOptions reads the options, in any order.
func quotaOptions(limit *limiter.Spec, calendars *calendar.Set, every calendar.Every, options [][]byte) (err error) {
	var zone []byte
	var start calendar.Start
	epoch, starts := false, false
	for len(options) > 0 {
		used := 1
		switch option := options[0]; {
		case isDebit(option) && limit.Flags&limiter.Debit == 0:
			limit.Flags |= limiter.Debit
		case glob.IsFolded(option, "countdenied") && limit.Flags&limiter.CountDenied == 0:
			limit.Flags |= limiter.CountDenied
		case isAtMost(option) && limit.Flags&limiter.AtMost == 0:
			limit.Flags |= limiter.AtMost
		case glob.IsFolded(option, "epoch") && !epoch:
			epoch = true
		case len(options) < 2 || len(options[1]) == 0:
			return reply.ErrSyntax
		case glob.IsFolded(option, "tz") && zone == nil:
			zone, used = options[1], 2
		case glob.IsFolded(option, "start") && !starts:
			starts = true
			if start, err = calendar.ParseStart(every, options[1]); err != nil {
				return reply.Error("ERR " + err.Error())
			}
			used = 2
		default:
			return reply.ErrSyntax
		}
		options = options[used:]
	}
	if limit.Calendar, err = calendars.Find(every, zone, start, epoch); err != nil {
		return reply.Error("ERR " + err.Error())
	}
	return nil
}
