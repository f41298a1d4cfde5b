package envoyconfig

import (
	"errors"
	"math/rand/v2"
)

// Bounds of a page of limits:
const (
	pageLimits = 100
	pageBytes  = 32 << 10 // of paths and names, unless one limit has more
)

// Limit is a descriptor with a rate limit.
type Limit struct {
	*Domain
	*Descriptor
}

// FullPath is the path by which envoyproxy/ratelimit knows a limit: behind its domain.
func (l *Limit) FullPath() string { return l.Name + "." + l.Path }

// Flags returns the names of a limit's fields that are true.
func (l *Limit) Flags() (names []string) {
	for _, flag := range []struct {
		name string
		is   bool
	}{
		{"unlimited", l.Rate.Unlimited}, {"shadow_mode", l.Shadow}, {"quota_mode", l.Quota}, {"share_threshold", l.Shared},
		{"detailed_metric", l.Detailed}, {"value_to_metric", l.ValueToMetric}, {"all_or_nothing", l.AllOrNothing},
	} {
		if flag.is {
			names = append(names, flag.name)
		}
	}
	return names
}

// ErrReplaced reports a cursor of rules that are no longer in use.
var ErrReplaced = errors.New("the limits for Envoy were replaced since this cursor; begin with 0")

// list lists the limits by domain, once, as all of them are too many to count for a client.
func (r *Rules) list() {
	r.id = rand.Uint32()
	for _, domain := range r.Domains {
		domain.first = len(r.limits)
		domain.Top.each(func(_ *Level, d *Descriptor) {
			if d.Rate != nil {
				r.limits = append(r.limits, Limit{domain, d})
			}
		})
		domain.count = len(r.limits) - domain.first
	}
}

// Count returns the number of limits.
func (r *Rules) Count() int { return len(r.limits) }

// Page returns some limits, of a domain unless it is nil, and the next cursor, 0 after the last. A cursor has
// the rules' id in its upper half and a position in its lower one. The error is ErrReplaced.
func (r *Rules) Page(of *Domain, cursor uint64) (next uint64, some []Limit, err error) {
	const half = 32
	all := r.limits
	if of != nil {
		all = all[of.first : of.first+of.count]
	}
	at := int(uint32(cursor))
	if cursor != 0 && cursor>>half != uint64(r.id) || at > len(all) {
		return 0, nil, ErrReplaced
	}
	all = all[at:]
	most, bytes := min(pageLimits, len(all)), 0
	n := 0
	for ; n < most && bytes < pageBytes; n++ {
		bytes += len(all[n].Name) + len(all[n].Path) + len(all[n].Rate.Name)
	}
	if n == len(all) {
		return 0, all, nil
	}
	return uint64(r.id)<<half | uint64(at+n), all[:n], nil
}
