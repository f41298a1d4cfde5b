package namedlimit

import (
	"strconv"
	"strings"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store/replicas"
)

// Digests returns what servers of a pair compare: the limits and plans in force, without overrides by
// commands.
func (r *Registry) Digests() replicas.Definitions { return r.current.Load().digests }

// digestsLocked returns the digests of limits in force and of the plans.
func (r *Registry) digestsLocked(all []*Limit) replicas.Definitions {
	digests := make([]replicas.Definition, 0, len(all)+len(r.planDigests))
	for _, l := range all {
		digests = append(digests, replicas.Definition{Name: l.Name, OfFile: l.Source == ByFile, Digest: l.digest})
	}
	return replicas.NewDefinitions(append(digests, r.planDigests...))
}

func digestPlans(plans map[string][]Rule) []replicas.Definition {
	digests := make([]replicas.Definition, 0, len(plans))
	for name, rules := range plans {
		p := Policy{Rules: rules}
		digests = append(digests, replicas.Definition{Name: "plan " + name, OfFile: true, Digest: replicas.Digest(0, p.ruleText())})
	}
	return digests
}

// digest returns the definition's digest: of a plan its rules count, of keys not their order.
func (d *Definition) digest() uint64 {
	digest := replicas.Digest(0, d.ruleText())
	digest = replicas.Digest(digest, " near "+strconv.FormatFloat(d.Near, 'g', -1, 64)+" shadow "+strconv.FormatBool(d.Shadow))
	if options := d.OptionWords(); options != nil { // else the digest is that of earlier versions
		digest = replicas.Digest(digest, " "+strings.Join(options, " "))
	}
	keys := uint64(0)
	for i := range d.Overrides {
		o := &d.Overrides[i]
		if o.Pattern != "" {
			digest = replicas.Digest(digest, " pattern "+strconv.Quote(o.Pattern)+" "+o.ruleText())
			continue
		}
		policy := replicas.Digest(0, o.ruleText())
		for _, key := range o.Keys {
			keys += replicas.Digest(policy, key)
		}
	}
	return digest + keys
}

// ruleText returns a policy as a command takes it, by the rules of its plan if they are known.
func (p *Policy) ruleText() string {
	if p.Constant != limiter.ByRules || len(p.Rules) == 0 {
		return strings.Join(p.Words(funnel.Capacity), " ")
	}
	texts := make([]string, len(p.Rules))
	for i := range p.Rules {
		texts[i] = p.Rules[i].Text(funnel.Capacity)
	}
	return strings.Join(texts, "; ")
}
