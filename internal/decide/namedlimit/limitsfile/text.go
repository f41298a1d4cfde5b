package limitsfile

import (
	"bytes"
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
)

// Text returns the definitions as a file of limits, in which max_burst has a reading. Reading it returns
// equal definitions, but that keys of a limit that share a policy are in one override, at the first one's
// place. A plan that is not defined is written as its rules.
func Text(d namedlimit.Definitions, reading funnel.Reading) []byte {
	w := writer{plans: d.Plans, reading: reading}
	if len(d.Limits) == 0 {
		w.line(0, "limits: {}")
	} else {
		w.line(0, "limits:")
	}
	for _, name := range slices.Sorted(maps.Keys(d.Limits)) {
		l := d.Limits[name]
		w.limit(&l)
	}
	if len(d.Plans) > 0 {
		w.line(0, "plans:")
	}
	for _, name := range slices.Sorted(maps.Keys(d.Plans)) {
		w.line(1, quote(name)+":")
		w.rules(d.Plans[name])
	}
	return w.Bytes()
}

type writer struct {
	bytes.Buffer
	plans   map[string][]namedlimit.Rule
	reading funnel.Reading
}

// widest is the column at which a list of keys is continued in the next line.
const widest = 100

func (w *writer) line(depth int, text string) {
	w.WriteString(strings.Repeat("  ", depth) + text + "\n")
}

func (w *writer) limit(l *namedlimit.Definition) {
	w.line(1, quote(l.Name)+":")
	if by := w.byName(&l.Policy); by != "" {
		w.line(2, by)
	} else {
		w.rules(l.Rules)
	}
	if len(l.Overrides) > 0 {
		w.line(2, "overrides:")
		for _, o := range grouped(l.Overrides) {
			w.override(&o)
		}
	}
	if l.Shadow {
		w.line(2, "shadow: true")
	}
	if l.Near != namedlimit.DefaultNear {
		w.line(2, "near: "+strconv.FormatFloat(l.Near, 'f', -1, 64))
	}
	if l.Unit != "" {
		w.line(2, "unit: "+quote(l.Unit))
	}
	if l.MaxReservation != 0 {
		w.line(2, "max_reservation: "+namedlimit.ShareText(l.MaxReservation))
	}
}

// byName returns the field of a policy that is a constant or a plan, else "".
func (w *writer) byName(p *namedlimit.Policy) string {
	_, known := w.plans[p.Plan]
	switch {
	case p.Constant == limiter.Deny:
		return "deny: true"
	case p.Constant == limiter.Unlimited:
		return "unlimited: true"
	case known:
		return "plan: " + quote(p.Plan)
	}
	return ""
}

func (w *writer) rules(rules []namedlimit.Rule) {
	w.line(2, "rules:")
	for i := range rules {
		w.line(3, "- "+w.rule(&rules[i]))
	}
}

func (w *writer) override(o *namedlimit.Override) {
	if len(o.Keys) == 0 {
		w.line(3, "- {pattern: "+quote(o.Pattern)+", "+w.policy(&o.Policy)+"}")
		return
	}
	line := "      - {keys: ["
	for i, key := range o.Keys {
		if i > 0 {
			line += ","
			if word := keyText(key); len(line)+len(word) > widest {
				w.WriteString(line + "\n")
				line = strings.Repeat(" ", 10)
			} else {
				line += " "
			}
		}
		line += keyText(key)
	}
	w.WriteString(line + "], " + w.policy(&o.Policy) + "}\n")
}

// keyText returns a key, or the list of its parts if that can be read again.
func keyText(key string) string {
	parts := namedlimit.SplitKey(key)
	if len(parts) < 2 || len(parts) > namedlimit.MaxParts || len(key) > maxPartsBytes {
		return quote(key)
	}
	for i := range parts {
		parts[i] = quote(parts[i])
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// policy returns an override's policy in one line.
func (w *writer) policy(p *namedlimit.Policy) string {
	if by := w.byName(p); by != "" {
		return by
	}
	rules := make([]string, len(p.Rules))
	for i := range p.Rules {
		rules[i] = w.rule(&p.Rules[i])
	}
	return "rules: [" + strings.Join(rules, ", ") + "]"
}

func (w *writer) rule(r *namedlimit.Rule) string {
	fields := []string{"algorithm: " + r.Algorithm.String()}
	add := func(name, value string) { fields = append(fields, name+": "+value) }
	for _, n := range r.Numbers() {
		switch {
		case n.Field == "period":
			add(n.Field, periodText(*n.Value))
		case n.Field == "capacity" && r.Algorithm == namedlimit.Funnel:
			add("max_burst", strconv.FormatInt(r.MaxBurst(w.reading), 10))
		default:
			add(n.Field, strconv.FormatInt(*n.Value, 10))
		}
	}
	if r.Algorithm == namedlimit.Quota {
		add("every", r.Calendar.Every.String())
		if zone := r.Calendar.Zone; zone != "" {
			add("time_zone", quote(zone))
		}
		if start := r.Calendar.Start.Text(r.Calendar.Every); start != "" {
			add("start", quote(start))
		}
		if r.Calendar.Epoch {
			add("epoch", "true")
		}
	}
	if r.Name != "" {
		add("name", quote(r.Name))
	}
	if r.BlockSec > 0 {
		add("block", periodText(r.BlockSec))
	}
	if r.BlockEach {
		add("block_on", "each")
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// periodText returns a period in its largest unit. Very long ones are no durations of Go.
func periodText(sec int64) string {
	const secPerMin, secPerHour = 60, 60 * 60
	const longest = 100 * 365 * 24 * secPerHour
	switch {
	case sec <= 0 || sec > longest:
		return strconv.FormatInt(sec, 10)
	case sec%secPerHour == 0:
		return strconv.FormatInt(sec/secPerHour, 10) + "h"
	case sec%secPerMin == 0:
		return strconv.FormatInt(sec/secPerMin, 10) + "m"
	}
	return strconv.FormatInt(sec, 10) + "s"
}

// grouped puts keys that share a policy into the first override with it. Exact keys have no order.
func grouped(overrides []namedlimit.Override) (groups []namedlimit.Override) {
	places := map[string]int{}
	for _, o := range overrides {
		if len(o.Keys) == 0 {
			groups = append(groups, o)
			continue
		}
		is := identify(&o.Policy)
		i, known := places[is]
		if !known {
			places[is] = len(groups)
			groups = append(groups, o)
			continue
		}
		groups[i].Keys = append(slices.Clip(groups[i].Keys), o.Keys...)
	}
	return groups
}

// plain are the characters of text that needs no quotes in YAML, if it begins with a letter.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./@+"

// quote returns text as a scalar of YAML, which is text for every reader.
func quote(text string) string {
	const letters = len("abcdefghijklmnopqrstuvwxyz") * 2
	switch {
	case !utf8.ValidString(text):
		return `!!binary "` + base64.StdEncoding.EncodeToString([]byte(text)) + `"`
	case text == "" || !strings.Contains(plain[:letters], text[:1]) || strings.Trim(text, plain) != "" || isWord(text):
		return strconv.Quote(text)
	}
	return text
}

// isWord reports whether text is a boolean or null for some readers of YAML.
func isWord(text string) bool {
	return slices.Contains([]string{"true", "false", "yes", "no", "on", "off", "y", "n", "null"}, strings.ToLower(text))
}
