package metrics

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/topkeys"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/store/replicas"
)

// maxRuleSeries bounds the rules with series of their own.
const maxRuleSeries = 1024

// collectLimits sends series of named limits, bounded by namedlimit.MaxNames and maxRuleSeries. Operators
// choose the names.
func (c *Config) collectLimits(to sink, st *store.Stats) {
	all, reloads := c.Limits.All(), c.Limits.Reloads()
	to.gauge("limits", "Named limits defined by --limits-file or CL.LIMIT SET.", len(all))
	to.truth("limits_file_reload_failed", "1 if the last reload of --limits-file failed and the previous limits are in use.", reloads.LastFailed)
	decisions := desc("limit_decisions_total", "Decisions by named limit and outcome; shadow_limited calls were allowed because the limit is a shadow.",
		"limit", "outcome")
	near := desc("limit_near_total", "Allowed calls, among those of limit_decisions_total, of keys near the named limit: at or above its share near of a rule's capacity.", "limit")
	overridden := desc("limit_overridden_total", "Decisions, among those of limit_decisions_total, by an override for the key.", "limit")
	beyond := desc("limit_charged_beyond_total", "Debits charged beyond the named limit, among the limited or shadow_limited of limit_decisions_total.", "limit")
	for _, l := range all {
		counts := l.Counts()
		to.outcomes(decisions, &counts, l.Name)
		to.count(near, counts.Near, l.Name)
		to.count(overridden, counts.Overridden, l.Name)
		to.count(beyond, counts.Over, l.Name)
		to.overrides(l)
		to.holds(l, st.Holds[l.Name])
	}
	to.rules(all)
	c.collectSpent(to, all)
}

// collectSpent sends what each limit has spent today, if it has spent anything in the days that are kept. A
// replica leaves that to its leader, so that sums over servers are right.
func (c *Config) collectSpent(to sink, all []*namedlimit.Limit) {
	if c.Spent == nil || c.Replication != nil && c.Replication().Role == replicas.Replica {
		return
	}
	days, spends, nowNs := c.Spent(""), map[string]bool{}, c.Limits.Now()
	for at := range days {
		spends[at.Limit] = true
	}
	const (
		what = " that calls under the named limit have spent today, in the zone of its first quota, else UTC: debits, and holds that began today with what " +
			"was settled beyond them and without what was returned; over a store, those of this server. Absent for a limit that has never spent, and on a replica."
		microsPerDollar = 1e6
	)
	units := desc("limit_spent_today_units", "Units"+what+" A limit with unit: usd has limit_spent_today_dollars instead.", "limit")
	dollars := desc("limit_spent_today_dollars", "Dollars"+what, "limit")
	for _, l := range all {
		if !spends[l.Name] {
			continue
		}
		d, n := units, float64(days[store.SpentAt{Limit: l.Name, Day: l.Today(nowNs)}])
		if l.Unit == namedlimit.USD {
			d, n = dollars, n/microsPerDollar
		}
		to.series(d, prometheus.GaugeValue, n, l.Name)
	}
}

// holds sends the counts of a limit's holds, if there were any.
func (to sink) holds(l *namedlimit.Limit, ended store.HoldStats) {
	counts := l.HoldCounts()
	if counts == (namedlimit.HoldCounts{}) && ended == (store.HoldStats{}) {
		return
	}
	d := desc("limit_holds_total", "Holds of CL.MRESERVE by the named limit, which has had one, and by what became of them, each pair of a call by itself: held; "+
		"settled in time, or late; returned or charged as their time was over; dropped, overdue ones beyond those that a key remembers; evicted with their key.", "limit", "event")
	for event, n := range map[string]uint64{
		"held": counts.Held, "settled": counts.Settled, "late": counts.Late,
		"returned": ended.Returned, "charged": ended.Charged, "dropped": ended.Dropped, "evicted": ended.Evicted,
	} {
		to.count(d, n, l.Name, event)
	}
}

// overrides sends the numbers of a limit's overrides, if it has any.
func (to sink) overrides(l *namedlimit.Limit) {
	keys, patterns := l.NumOverrides()
	if keys+patterns == 0 {
		return
	}
	d := desc("limit_overrides", "Keys (key) and patterns (pattern) with an override of the named limit, which has one at least.", "limit", "match")
	to.series(d, prometheus.GaugeValue, float64(keys), l.Name, "key")
	to.series(d, prometheus.GaugeValue, float64(patterns), l.Name, "pattern")
}

// rules sends the counts of the rules of limits with several: of the first limits that fit.
func (to sink) rules(all []*namedlimit.Limit) {
	const which = "; of limits with several rules, at most 1,024 rules in the order of the limits' names"
	decisions := desc("limit_rule_decisions_total", "Decisions by each of a named limit's own rules and outcome"+which+". "+
		"Every rule allows an allowed call; a limited one counts for the rules that deny it.", "limit", "rule", "outcome")
	near := desc("limit_rule_near_total", "Allowed calls near the limit by the rule they are near"+which+".", "limit", "rule")
	shown, leftOut := 0, 0
	for _, l := range all {
		n := len(l.Rules)
		if n < 2 {
			continue
		}
		if leftOut > 0 || shown+n > maxRuleSeries {
			leftOut += n
			continue
		}
		shown += n
		for i := range l.Rules {
			counts, rule := l.RuleCounts(i), l.Rules[i].Label()
			to.outcomes(decisions, &counts, l.Name, rule)
			to.count(near, counts.Near, l.Name, rule)
		}
	}
	to.gauge("limit_rules_left_out", "Rules beyond the 1,024 that have series of their own.", leftOut)
}

// outcomes sends the outcomes that sum up to all decisions.
func (to sink) outcomes(d *prometheus.Desc, c *namedlimit.Counts, labels ...string) {
	with := func(outcome string) []string { return append(labels[:len(labels):len(labels)], outcome) }
	to.count(d, c.Allowed, with("allowed")...)
	to.count(d, c.Limited, with("limited")...)
	to.count(d, c.ShadowLimited, with("shadow_limited")...)
}

func (to sink) count(d *prometheus.Desc, n uint64, labels ...string) {
	to.series(d, prometheus.CounterValue, float64(n), labels...)
}

// NameStyle is the form of key names in labels.
type NameStyle string

const (
	PlainNames  NameStyle = "plain"
	HashedNames NameStyle = "hash" // first 16 hex digits of SHA-256, which hide the key but let a guess be verified
	CutNames    NameStyle = "cut"  // first characters; keys that share them are summed
)

const (
	// MaxTopKeys bounds the series of each ranking.
	MaxTopKeys = 100

	cutNameBytes  = 8
	hashNameBytes = 8 // in hexadecimal, two digits each
)

// name returns a key as a valid UTF-8 label value.
func (s NameStyle) name(key string) string {
	switch {
	case s == HashedNames:
		sum := sha256.Sum256([]byte(key))
		return hex.EncodeToString(sum[:hashNameBytes])
	case s == CutNames && len(key) > cutNameBytes:
		return resp.PrintableN([]byte(key), cutNameBytes) + "..."
	}
	return resp.PrintableN([]byte(key), 4*topkeys.MaxNameBytes)
}

// topKeys sends the most requested and the most limited keys, up to n each; by default none, as keys may be
// personal data.
func (to sink) topKeys(top func(ranking topkeys.Ranking, n int) []topkeys.Entry, n int, names NameStyle) {
	if n == 0 {
		return
	}
	labels := []string{"kind", "db", "key"}
	rateDesc := desc("top_key_calls_per_second", "Estimated calls per second of the most requested and the most limited keys over about "+
		"the last minute; keys whose estimate is within its error are left out.", labels...)
	errDesc := desc("top_key_calls_per_second_error", "Error of top_key_calls_per_second.", labels...)
	for _, ranking := range []topkeys.Ranking{topkeys.Requested, topkeys.Limited} {
		type series struct{ db, key string }
		rates, errs := map[series]float64{}, map[series]float64{}
		for _, e := range top(ranking, n) {
			s := series{strconv.Itoa(int(e.DB)), names.name(e.Name)}
			rates[s] += e.CallsPerSecond
			errs[s] += e.Error
		}
		for s, rate := range rates {
			to.series(errDesc, prometheus.GaugeValue, errs[s], ranking.String(), s.db, s.key)
			to.series(rateDesc, prometheus.GaugeValue, rate, ranking.String(), s.db, s.key)
		}
	}
}
