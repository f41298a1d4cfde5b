// Package limits reads the named limits of a running cellserver, to compare them with a file, and translates
// configurations of envoyproxy/ratelimit into one. A Running is a value; nothing is changed on the server.
package limits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cellserver/internal/base/yamlfile"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/namedlimit/limitsfile"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
)

// Running are the limits of a running server.
type Running struct {
	namedlimit.Definitions                 // without plans that nothing uses
	ByCommand              map[string]bool // the names of those that the file does not have
	Reading                funnel.Reading  // of max_burst by the server
}

// Server sends commands at once and returns their replies, nil for null, or the first error.
type Server interface {
	Do(ctx context.Context, commands ...[]any) (replies []any, err error)
	Name() string
}

// atOnce bounds the commands that are sent at once.
const atOnce = 100

// Read reads the limits of a server: definitions, overrides of its file, and plans that anything uses, also
// overrides by commands. The error has one line.
func Read(ctx context.Context, s Server) (*Running, error) {
	r := &reader{server: s, policies: map[string]namedlimit.Policy{}}
	r.Limits, r.Plans, r.ByCommand = map[string]namedlimit.Definition{}, map[string][]namedlimit.Rule{}, map[string]bool{}
	replies, err := s.Do(ctx, []any{"CL.LIMIT", "LIST"}, []any{"CONFIG", "GET", readingSetting})
	if err != nil {
		return nil, err
	}
	names, _ := replies[0].([]any)
	if r.Reading, err = readingOf(replies[1]); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name(), err)
	}
	for some := range slices.Chunk(names, atOnce) {
		if err := r.readLimits(ctx, some); err != nil {
			return nil, err
		}
	}
	return &r.Running, nil
}

const readingSetting = "burst-is-capacity"

func readingOf(setting any) (funnel.Reading, error) {
	switch value := fields(setting)[readingSetting]; value {
	case "yes":
		return funnel.Capacity, nil
	case "no":
		return funnel.Burst, nil
	default:
		return 0, errors.New("it does not tell its setting " + readingSetting + ", so it is an older cellserver")
	}
}

// Diff returns what would change if the server's file had these definitions. Limits by commands stay, unless
// the file has them. Plans that nothing uses are not compared.
func (r *Running) Diff(file namedlimit.Definitions) []limitsfile.Change {
	from := namedlimit.Definitions{Limits: maps.Clone(r.Limits), Plans: r.Plans}
	var taken []limitsfile.Change
	for name := range r.ByCommand {
		if _, ok := file.Limits[name]; ok {
			taken = append(taken, limitsfile.Change{Limit: name, Text: "source: command -> file"})
		} else {
			delete(from.Limits, name)
		}
	}
	used := plansOf(file)
	plans := maps.Clone(file.Plans)
	maps.DeleteFunc(plans, func(name string, _ []namedlimit.Rule) bool {
		_, known := r.Plans[name]
		return !known && !used[name]
	})
	changes := append(limitsfile.Diff(from, namedlimit.Definitions{Limits: file.Limits, Plans: plans}, r.Reading), taken...)
	slices.SortStableFunc(changes, func(a, b limitsfile.Change) int {
		return cmp.Or(strings.Compare(a.Limit, b.Limit), strings.Compare(a.Key, b.Key), strings.Compare(a.Text, b.Text))
	})
	return changes
}

// plansOf returns the plans that limits and their overrides use.
func plansOf(d namedlimit.Definitions) map[string]bool {
	used := map[string]bool{}
	for _, l := range d.Limits {
		used[l.Plan] = true
		for i := range l.Overrides {
			used[l.Overrides[i].Plan] = true
		}
	}
	return used
}

// reader reads a server's replies.
type reader struct {
	Running
	server   Server
	limit    string                       // the one that is read
	policies map[string]namedlimit.Policy // by their texts
}

// wrong returns an error about a reply.
func (r *reader) wrong(what string) error {
	return errors.New(r.server.Name() + ": the limit " + r.limit + ": " + what)
}

// unexpected reports a reply of another version.
func (r *reader) unexpected(what any) error {
	return r.wrong("the reply " + yamlfile.Quote(fmt.Sprint(what)) + " is not understood; use the server's version of cellserver")
}

func (r *reader) readLimits(ctx context.Context, names []any) error {
	commands := make([][]any, len(names))
	for i, name := range names {
		commands[i] = []any{"CL.LIMIT", "GET", name}
	}
	replies, err := r.server.Do(ctx, commands...)
	if err != nil {
		return err
	}
	for i, reply := range replies {
		if reply == nil {
			continue // deleted meanwhile
		}
		r.limit = fmt.Sprint(names[i])
		if err := r.readLimit(ctx, fields(reply)); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) readLimit(ctx context.Context, f map[string]any) (err error) {
	d := namedlimit.Definition{Name: r.limit}
	policy, known := f["policy"].(string)
	if !known {
		return r.wrong("the server is older, and does not tell its policy; update it, or compare files")
	}
	d.Shadow = f["shadow"] == int64(1)
	if d.Near, err = strconv.ParseFloat(fmt.Sprint(f["near_share"]), 64); err != nil {
		return r.unexpected(f["near_share"])
	}
	if err := r.readOptions(&d, f); err != nil {
		return err
	}
	rules, _ := f["rules"].([]any)
	texts := make([]any, len(rules))
	for i := range rules {
		texts[i] = fields(rules[i])["rule"]
	}
	if d.Policy, err = r.policy(policy, texts); err != nil {
		return err
	}
	if n, _ := f["file_overrides"].(int64); n > 0 {
		if err := r.readFileOverrides(ctx, &d, n); err != nil {
			return err
		}
	}
	if n, _ := f["override_keys"].(int64); n > 0 {
		if err := r.readPlans(ctx, d.Name); err != nil {
			return err
		}
	}
	r.Limits[d.Name] = d
	if f["source"] == namedlimit.ByCommand.String() {
		r.ByCommand[d.Name] = true
	}
	return nil
}

// readOptions reads what earlier versions do not tell.
func (r *reader) readOptions(d *namedlimit.Definition, f map[string]any) (err error) {
	if unit := f["unit"]; unit != nil {
		if d.Unit = fmt.Sprint(unit); namedlimit.CheckUnit(d.Unit) != nil {
			return r.unexpected(unit)
		}
	}
	if share := f["max_reservation"]; share != nil {
		if d.MaxReservation, err = namedlimit.ReadShare(fmt.Sprint(share)); err != nil {
			return r.unexpected(share)
		}
	}
	return nil
}

// readFileOverrides reads the n overrides of the file. It lists keys that share a policy together.
func (r *reader) readFileOverrides(ctx context.Context, d *namedlimit.Definition, n int64) error {
	places, listed := map[string]int{}, int64(0)
	err := r.each(ctx, []any{"CL.LIMIT", "OVERRIDES", d.Name}, []any{"FILE"}, func(o []any) error {
		if len(o) != 4 {
			return r.unexpected(o)
		}
		kind, selector, text := o[0], fmt.Sprint(o[1]), fmt.Sprint(o[2])
		rules, _ := o[3].([]any)
		policy, err := r.policy(text, rules)
		if err != nil {
			return err
		}
		listed++
		id := fmt.Sprint(text, rules)
		place, known := places[id]
		switch {
		case kind == "pattern":
			d.Overrides = append(d.Overrides, namedlimit.Override{Pattern: selector, Policy: policy})
		case known:
			d.Overrides[place].Keys = append(d.Overrides[place].Keys, selector)
		default:
			places[id] = len(d.Overrides)
			d.Overrides = append(d.Overrides, namedlimit.Override{Keys: []string{selector}, Policy: policy})
		}
		return nil
	})
	if err == nil && listed != n {
		err = r.wrong(fmt.Sprintf("the server lists %d of %d overrides; give a user in the URL who may read all keys, or try again if limits were reloaded", listed, n))
	}
	return err
}

// readPlans reads plans that only overrides by commands use. A reply about one of their keys tells the rules.
func (r *reader) readPlans(ctx context.Context, limit string) error {
	keys := map[string]any{}
	err := r.each(ctx, []any{"CL.LIMIT", "OVERRIDES", limit}, nil, func(o []any) error {
		if len(o) != 3 {
			return r.unexpected(o)
		}
		text, _ := o[1].(string)
		if plan, ok := strings.CutPrefix(text, "PLAN "); ok && r.Plans[plan] == nil {
			keys[plan] = o[0]
		}
		return nil
	})
	for plan, key := range keys {
		if err != nil {
			break
		}
		err = r.explainPlan(ctx, limit, plan, key)
	}
	return err
}

func (r *reader) explainPlan(ctx context.Context, limit, plan string, key any) error {
	replies, err := r.server.Do(ctx, []any{"CL.LIMIT", "EXPLAIN", limit, key})
	if err != nil {
		return err
	}
	parts, _ := replies[0].([]any)
	if len(parts) == 0 || parts[0] != "command: PLAN "+plan {
		return nil // it has ended, or its plan is gone
	}
	var texts []any
	for _, part := range parts[1:] {
		rule, _ := part.([]any)
		if len(rule) == 0 {
			return r.unexpected(part)
		}
		texts = append(texts, namedlimit.CutAmounts(fmt.Sprint(rule[0])))
	}
	_, err = r.policy("PLAN "+plan, texts)
	return err
}

// each visits the elements of all pages of a command with the cursor between its words.
func (r *reader) each(ctx context.Context, before, after []any, visit func(element []any) error) error {
	cursor := "0"
	for {
		words := append(append(append([]any{}, before...), cursor), after...)
		replies, err := r.server.Do(ctx, words)
		if err != nil {
			return err
		}
		page, _ := replies[0].([]any)
		if len(page) != 2 {
			return r.unexpected(replies[0])
		}
		elements, _ := page[1].([]any)
		for _, element := range elements {
			parts, _ := element.([]any)
			if err := visit(parts); err != nil {
				return err
			}
		}
		if cursor = fmt.Sprint(page[0]); cursor == "0" {
			return nil
		}
	}
}

// policy parses a policy and its rules' texts, and remembers what a plan stands for.
func (r *reader) policy(text string, rules []any) (p namedlimit.Policy, err error) {
	id := fmt.Sprint(text, rules)
	if p, known := r.policies[id]; known {
		return p, nil
	}
	p, rest, err := namedlimit.ReadPolicy(strings.Fields(text), r.Reading)
	if err != nil || len(rest) > 0 {
		return p, r.unexpected(text)
	}
	if p.Constant == limiter.ByRules {
		p.Rules = nil
		for _, text := range rules {
			rule, err := r.rule(fmt.Sprint(text))
			if err != nil {
				return p, err
			}
			p.Rules = append(p.Rules, rule)
		}
	}
	if p.Plan != "" {
		r.Plans[p.Plan] = p.Rules
	}
	r.policies[id] = p
	return p, nil
}

// rule parses a rule's words, which its name and a colon precede if it has one.
func (r *reader) rule(text string) (rule namedlimit.Rule, err error) {
	name, words, named := strings.Cut(text, ": ")
	if !named {
		name, words = "", text
	}
	rules, rest, err := namedlimit.ReadRules(strings.Fields(words), r.Reading)
	if err != nil || len(rest) > 0 || len(rules) != 1 {
		return rule, r.unexpected(text)
	}
	rule = rules[0]
	rule.Name = name
	return rule, nil
}

// fields returns a map that the second version of the protocol has as pairs.
func fields(reply any) map[string]any {
	pairs, _ := reply.([]any)
	m := make(map[string]any, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		m[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return m
}
