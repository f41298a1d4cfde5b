package argument

import (
	"math"
	"slices"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/observe"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/glob"
)

// Names is what the names in requests stand for.
type Names struct {
	Joined []byte             // composed names of keys
	Limits *namedlimit.Limits // of all calls of a step; nil: each call is decided by those in force

	increments []limiter.Increment // of a batch
}

// Forget drops what the requests of a batch refer to.
func (n *Names) Forget() { n.Joined, n.increments = n.Joined[:0], n.increments[:0] }

// increment returns room for a request, which stays in its place.
func (n *Names) increment() *limiter.Increment {
	if len(n.increments) == cap(n.increments) {
		n.increments = make([]limiter.Increment, 0, observe.MaxBatch)
	}
	n.increments = n.increments[:len(n.increments)+1]
	return &n.increments[len(n.increments)-1]
}

// check returns the Request of CL.CHECK.
func check(named *namedlimit.Registry) Request {
	return func(q *store.Request, db uint16, args [][]byte, _ funnel.Reading, names *Names) error {
		if len(args) < 3 || len(args) > 5 {
			return reply.ErrArity
		}
		quantity, flags, options := int64(1), limiter.Flags(0), args[3:]
		if len(options) > 0 && flagOf(options[0]) == 0 {
			var err error
			if quantity, err = Number(options[0]); err != nil {
				return err
			}
			options = options[1:]
		}
		if len(options) > 0 {
			if flags = flagOf(options[0]); flags == 0 || len(options) > 1 {
				return reply.ErrSyntax
			}
		}
		limits := names.Limits
		if limits == nil {
			own := named.Limits()
			limits = &own
		}
		_, err := Named(limits, q, db, args[1], args[2], quantity, flags, &names.Joined)
		return err
	}
}

// flagOf returns the flag of an option of CL.CHECK, 0 for none.
func flagOf(option []byte) limiter.Flags {
	switch {
	case isDebit(option):
		return limiter.Debit
	case isAtMost(option):
		return limiter.AtMost
	}
	return 0
}

// Named makes a request of a key under the name of a limit, with the flag Debit or AtMost or none, and
// returns what decides it.
func Named(limits *namedlimit.Limits, q *store.Request, db uint16, name, key []byte, quantity int64, flags limiter.Flags, joined *[]byte) (*namedlimit.Policy, error) {
	limit := limits.Lookup(name)
	if limit == nil {
		return nil, NoLimit(name)
	}
	by, policy := limit.Named(key, &limits.Moment)
	q.Rule = limiter.OfNamed(by)
	if flags != 0 {
		if err := checkUnits(quantity); err != nil {
			return nil, err
		}
		if flags == limiter.Debit && !by.Debits() {
			return nil, reply.Error("ERR the limit '" + limit.Name + "' has an exact sliding window for this key, which has no DEBIT; use an approximate one")
		}
		if q.Rule.Flags = flags; flags == limiter.AtMost {
			q.Rule.Packed[0] = quantity
		}
	}
	from := len(*joined)
	*joined = catalog.AppendJoined(*joined, name, key)
	q.Key = store.Key{DB: db, Name: (*joined)[from:len(*joined):len(*joined)]}
	q.Quantity = quantity
	return policy, nil
}

// NoLimit is the error of a name without a limit.
func NoLimit(name []byte) error {
	return reply.Error("ERR " + namedlimit.NoLimit(resp.PrintableN(name, namedlimit.MaxNameBytes)).Error())
}

// Limit returns a limit by its name.
func Limit(limits *namedlimit.Limits, name []byte) (*namedlimit.Limit, error) {
	limit := limits.Lookup(name)
	if limit == nil {
		return nil, NoLimit(name)
	}
	return limit, nil
}

// Definition reads the arguments of CL.LIMIT SET.
func Definition(args [][]byte, reading funnel.Reading) (d namedlimit.Definition, err error) {
	d.Name, d.Near, args = string(args[2]), namedlimit.DefaultNear, args[3:]
	if err := namedlimit.CheckName([]byte(d.Name)); err != nil {
		return d, reply.Error("ERR " + err.Error())
	}
	var rest []string
	if beginsAsWord(args[0]) {
		if d.Rules, rest, err = namedlimit.ReadRules(printed(args), reading); err != nil {
			return d, refused(err)
		}
	} else {
		numbers := slices.IndexFunc(args, namedlimit.IsOption)
		if numbers < 0 {
			numbers = len(args)
		}
		if d.Rules, err = windows(args[:numbers], reading); err != nil {
			return d, err
		}
		rest = printed(args[numbers:])
	}
	if rest, err = d.ReadOptions(rest); err == nil && len(rest) > 0 {
		return d, reply.ErrSyntax
	}
	return d, refused(err)
}

// windows reads the old form of rules: funnels without a word.
func windows(args [][]byte, reading funnel.Reading) (rules []namedlimit.Rule, err error) {
	const numbers = 3 // of a window
	if len(args) == 0 || len(args)%numbers != 0 || len(args) > namedlimit.MaxRules*numbers {
		return nil, reply.ErrSyntax
	}
	for ; len(args) > 0; args = args[numbers:] {
		var n [numbers]int64
		if err := Numbers(n[:], args); err != nil {
			return nil, err
		}
		r := namedlimit.Rule{Algorithm: namedlimit.Funnel, Count: n[1], PeriodSec: n[2]}
		if wrong := r.WrongRate(); wrong != nil {
			return nil, refused(wrong)
		}
		l, err := funnel.NewLimit(reading, n[0], n[1], n[2])
		if err != nil {
			return nil, err
		}
		r.Capacity = l.Capacity()
		rules = append(rules, r)
	}
	return rules, nil
}

// printed returns arguments as printable text, as errors quote them.
func printed(args [][]byte) []string {
	all := make([]string, len(args))
	for i, arg := range args {
		all[i] = resp.PrintableN(arg, namedlimit.MaxNameBytes)
	}
	return all
}

// refused makes an error a reply.
func refused(err error) error {
	if err == nil {
		return nil
	}
	return reply.Error("ERR " + err.Error())
}

// Override reads the arguments of CL.LIMIT OVERRIDE.
func Override(args [][]byte, reading funnel.Reading, nowNs int64) (o namedlimit.KeyOverride, err error) {
	o.Limit, o.Key = string(args[2]), string(args[3])
	if err := namedlimit.CheckName(args[2]); err != nil {
		return o, refused(err)
	}
	rest := printed(args[4:])
	if len(rest) == 1 && glob.Fold(args[4]) == "del" {
		o.Removed = true
		return o, nil
	}
	if o.Policy, rest, err = namedlimit.ReadPolicy(rest, reading); err != nil {
		return o, refused(err)
	}
	if len(rest) == 0 {
		return o, nil
	}
	if len(rest) != 2 || glob.Fold([]byte(rest[0])) != "ex" {
		return o, reply.ErrSyntax
	}
	sec, err := Int([]byte(rest[1]))
	if err != nil {
		return o, reply.Error("ERR EX must be a whole number of seconds, such as 3600, got '" + rest[1] + "'")
	}
	if sec < 1 || sec > math.MaxInt64/1_000_000_000 {
		return o, reply.Error("ERR invalid expire time in 'cl.limit|override' command")
	}
	o.UntilNs = funnel.After(nowNs, uint64(sec)*1e9)
	return o, nil
}
