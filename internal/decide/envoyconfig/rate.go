package envoyconfig

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"cellserver/internal/base/yamlfile"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/limiter/calendar"
)

func (r *reader) readRate(n *yaml.Node) *Rate {
	l := &Rate{Algorithm: namedlimit.Quota}
	var unit, count, list, algorithm *yaml.Node
	r.fields(n, "rate_limit", func(key, value *yaml.Node) {
		switch key.Value {
		case "unit":
			unit, l.Unit = key, r.text(value, "unit")
		case "requests_per_unit":
			count, l.Count = key, r.number(value)
		case "unlimited":
			l.Unlimited = r.yes(value, "unlimited")
		case "name":
			l.Name, l.NameAt = r.text(value, "name"), r.of(value)
		case "replaces":
			list = value
		case "algorithm":
			algorithm = value
		default:
			r.misplaced(key, "rate_limit")
		}
	})
	if unit == nil {
		unit = n
	}
	r.checkUnit(r.of(unit), l)
	switch {
	case l.Unlimited && count != nil:
		r.note(r.of(count), "requests_per_unit has no effect beside unlimited; remove one of them")
	case !l.Unlimited && count == nil:
		r.note(r.of(n), "requests_per_unit is missing, which is 0: it denies all; write it")
	}
	if list != nil {
		r.readReplaces(list, l)
	}
	if algorithm != nil {
		r.readAlgorithm(algorithm, l)
	}
	return l
}

// knownUnit returns a unit in lower case, empty for an unknown one.
func knownUnit(unit string) string {
	if e, ok := calendar.EveryOf([]byte(unit)); ok {
		return e.String()
	}
	return ""
}

// UnitSec returns the seconds of a unit, with months of 30 days and years of 365, or 0 for an unknown one.
func UnitSec(unit string) int64 {
	if e, ok := calendar.EveryOf([]byte(unit)); ok {
		return e.FixedSec()
	}
	return 0
}

// readAlgorithm checks the limit, too, as an algorithm may not permit it.
func (r *reader) readAlgorithm(n *yaml.Node, l *Rate) {
	name := r.text(n, "algorithm")
	algorithm, ok := namedlimit.AlgorithmOf(name)
	if !ok {
		r.Fail(n, "unknown algorithm "+yamlfile.QuoteWord(name)+
			"; there are funnel, token_bucket, fixed_window, sliding_window, approximate_window and quota")
		return
	}
	l.Algorithm = algorithm
	if l.Unlimited {
		r.note(r.of(n), "algorithm has no effect beside unlimited; remove it")
		return
	}
	if l.Count == 0 || l.Unit == "" || algorithm == namedlimit.Quota {
		return
	}
	count := int64(l.Count)
	rule := namedlimit.Rule{Algorithm: algorithm, Capacity: count, PeriodSec: UnitSec(l.Unit)}
	if algorithm == namedlimit.Funnel || algorithm == namedlimit.TokenBucket {
		rule.Count = count
	}
	if err := namedlimit.CheckRule(&rule, nil); err != nil {
		r.Fail(n, strings.Replace(err.Error(), "max_count", "requests_per_unit", 1))
	}
}

func (r *reader) readReplaces(n *yaml.Node, l *Rate) {
	r.Items(n, "replaces", func(item *yaml.Node) {
		before, name := r.Count(), ""
		r.fields(item, "an entry of replaces", func(key, value *yaml.Node) {
			if key.Value != "name" {
				r.misplaced(key, "an entry of replaces")
				return
			}
			name = r.text(value, "name")
		})
		if r.Count() == before {
			r.addReplaced(l, r.of(item), name)
		}
	})
}

// number reads 32 bits, in the notations of YAML 1.1.
func (r *reader) number(n *yaml.Node) uint32 {
	v, err := strconv.ParseUint(strings.ReplaceAll(strings.TrimPrefix(n.Value, "+"), "_", ""), 0, 32)
	if !plain(n) || err != nil {
		r.Fail(n, "requests_per_unit must be a number from 0 to 4294967295, got "+yamlfile.QuoteWord(n.Value))
	}
	return uint32(v)
}
