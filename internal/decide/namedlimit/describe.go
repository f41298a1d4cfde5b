package namedlimit

import (
	"slices"
	"strings"

	"cellserver/internal/funnel"
)

// Description is a limit as clients are told of it, in the order and under the names of their replies.
type Description struct {
	Name    string     `json:"name"`
	Windows [][3]int64 `json:"windows"` // max_burst, count and period of the rules if all are funnels without a name and a block
	Shadow  bool       `json:"shadow"`
	Source  string     `json:"source"`
	Counts
	Overridden       uint64            `json:"overridden"`
	Near             float64           `json:"near_share"`
	Rules            []RuleDescription `json:"rules"`
	OverrideKeys     int               `json:"override_keys"`
	OverridePatterns int               `json:"override_patterns"`
	Policy           string            `json:"policy"`
	FileOverrides    int               `json:"file_overrides"`
	HoldCounts
	Unit           string  `json:"unit,omitempty"`
	MaxReservation float64 `json:"max_reservation,omitempty"`
}

// RuleDescription is one of a limit's own rules.
type RuleDescription struct {
	Rule string `json:"rule"`
	Counts
}

func (l *Limit) Describe(reading funnel.Reading) Description {
	d := Description{
		Name: l.Name, Windows: [][3]int64{}, Shadow: l.Shadow, Source: l.Source.String(), Counts: l.Counts(), Near: l.Near,
		Rules: make([]RuleDescription, len(l.Rules)), Policy: strings.Join(l.Words(reading), " "), FileOverrides: l.NumFileOverrides(), HoldCounts: l.HoldCounts(),
		Unit: l.Unit, MaxReservation: l.MaxReservation,
	}
	d.Overridden = d.Counts.Overridden
	d.OverrideKeys, d.OverridePatterns = l.NumOverrides()
	for i := range l.Rules {
		d.Rules[i] = RuleDescription{l.Rules[i].Text(reading), l.RuleCounts(i)}
	}
	isOther := func(r Rule) bool { return r.Algorithm != Funnel || r.Name != "" || r.BlockSec > 0 }
	if !slices.ContainsFunc(l.Rules, isOther) {
		for _, r := range l.Rules {
			d.Windows = append(d.Windows, [3]int64{r.MaxBurst(reading), r.Count, r.PeriodSec})
		}
	}
	return d
}
