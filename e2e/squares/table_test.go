package squares

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// columns are what may meet, in the order of the table.
var columns = []string{
	aFunnel, aBucket, aFixed, aSliding, aApproximate, aQuota, "constant", "several rules",
	"override by key", "override by pattern", "override by command", "plan", "shadow", "near",
	"block", "several names", "debit", "at most", "look", "refund", "hold", "commit", "extend", "held", "overdue", "explain", "reload", "changed numbers",
	"RESP2", "RESP3", "pipeline", "EXEC", "EVAL", "HTTP GET", "HTTP explain", "HTTP POST", "HTTP holds", "page", "Envoy",
	"memory", "store", "replica", "store on Redis", "local share", "eviction", "disk",
}

// table counts the calls in which two of the columns meet.
type table struct {
	of    map[[2]string]int
	spent int // limits under which something was, at the ends of runs
}

func (b *table) count(features []string, door string, also []string) {
	all := append(append(slices.Clone(features), door), also...)
	for _, x := range all {
		for _, y := range all {
			b.of[[2]string{x, y}]++
		}
	}
}

// log prints a square a pair, one side of the diagonal.
func (b *table) log(t *testing.T) {
	var text strings.Builder
	for i, x := range columns {
		if b.of[[2]string{x, x}] == 0 {
			continue
		}
		fmt.Fprintf(&text, "\n| %s |", x)
		for _, y := range columns[:i+1] {
			if b.of[[2]string{y, y}] > 0 {
				fmt.Fprintf(&text, " %d |", b.of[[2]string{x, y}])
			}
		}
	}
	t.Log(text.String())
}

// features are what meets in a question.
func (r *run) features(q *question) []string {
	has := map[string]bool{}
	if q.kind != "check" {
		has[map[string]string{"together": "several names", "explain": "explain", "page": "look", "reserve": "hold"}[q.kind]] = true
	}
	if q.isHeld() {
		has["commit"], has["extend"], has["several names"] = q.kind == "commit", q.kind == "extend", len(q.calls) > 1
	}
	for _, c := range q.calls {
		of, ok := r.ruling(c.pair, r.now())
		if !ok {
			continue
		}
		has["constant"] = has["constant"] || of.constant != ""
		has["several rules"] = has["several rules"] || len(of.rules) > 1
		has["plan"] = has["plan"] || of.plan != ""
		has["shadow"] = has["shadow"] || of.of.shadow
		has[of.kind] = true
		for _, h := range r.holds[c.pair] {
			has["held"], has["overdue"] = has["held"] || !h.overdue, has["overdue"] || h.overdue
		}
		has["debit"] = has["debit"] || c.debit
		has["at most"] = has["at most"] || c.most
		if q.kind == "check" || q.kind == "together" {
			has["look"] = has["look"] || c.units == 0
			has["refund"] = has["refund"] || c.units < 0
		}
		for i := range of.rules {
			by := &of.rules[i]
			has[by.algorithm] = true
			has["block"] = has["block"] || r.blocks(c.pair, &of, r.now())[i] != nil
			if e := r.keys[c.pair][by.id()]; e != nil && e.untilNs > r.now() {
				has["reload"] = has["reload"] || e.file != r.file
				has["changed numbers"] = has["changed numbers"] || e.by != *by
			}
		}
		has["near"] = has["near"] || r.decide(c, r.now(), seconds).near
	}
	var all []string
	for _, name := range columns {
		if has[name] {
			all = append(all, name)
		}
	}
	return all
}
