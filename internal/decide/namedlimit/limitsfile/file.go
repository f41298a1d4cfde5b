package limitsfile

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"cellserver/internal/base/nearest"
	"cellserver/internal/base/yamlfile"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter/calendar"
)

// maxFileBytes exceeds MaxOverrides keys that each have their own rule.
const maxFileBytes = 16 << 20

// ReadFile reads a file of limits, in which max_burst has a reading. The error names all bad lines.
func ReadFile(path string, reading funnel.Reading, calendars *calendar.Set) (namedlimit.Definitions, error) {
	d, _, err := readFile(path, reading, calendars)
	return d, err
}

// readFile is a namedlimit.ReadFile.
func readFile(path string, reading funnel.Reading, calendars *calendar.Set) (d namedlimit.Definitions, whole bool, err error) {
	text, err := yamlfile.ReadUpTo(path, maxFileBytes)
	if err != nil {
		return namedlimit.Definitions{}, false, err
	}
	d, err = parseFile(path, text, reading, calendars)
	return d, bytes.HasSuffix(text, []byte("\n")), err
}

// parseFile parses a file:
//
//	limits:
//	  login:
//	    windows:
//	      - {max_burst: 4, count: 5, period: 1m}
//	    shadow: true
//	  api:
//	    rules:
//	      - {algorithm: quota, max_count: 1000000, every: month}
//	    overrides:
//	      - {keys: [acme], plan: enterprise}
//	plans:
//	  enterprise: {rules: [{algorithm: sliding_window, max_count: 100, period: 1m}]}
//
// capacity may replace max_burst. A period is a number of seconds or a duration. Fields x-... have no
// meaning.
func parseFile(path string, text []byte, reading funnel.Reading, calendars *calendar.Set) (namedlimit.Definitions, error) {
	p := fileReader{File: yamlfile.File{Path: path}, reading: reading, sets: ruleSet{calendars: calendars}}
	p.read.Limits, p.read.Plans = map[string]namedlimit.Definition{}, map[string][]namedlimit.Rule{}
	if root := p.Root(text); root != nil {
		p.readDocument(root)
	} else if p.Count() == 0 {
		p.FailAt(1, "the file is empty; write 'limits: {}' for no limits")
	}
	if err := p.Err(); err != nil {
		return namedlimit.Definitions{}, err
	}
	return p.read, nil
}

type fileReader struct {
	yamlfile.File
	reading funnel.Reading
	sets    ruleSet // the empty one
	read    namedlimit.Definitions
	keys    int // exact keys of all overrides
}

func (p *fileReader) unknown(key *yaml.Node, known string) {
	p.Fail(key, "unknown field "+yamlfile.QuoteWord(key.Value)+thereAre(key.Value, known))
}

// thereAre names the known words, and before them the one that a wrong one is like.
func thereAre(wrong, known string) string {
	words := strings.FieldsFunc(known, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) })
	words = slices.DeleteFunc(words, func(word string) bool { return word == "and" || word == "or" })
	if word := nearest.Word(wrong, words); word != "" {
		return "; did you mean " + word + "? There are " + known
	}
	return "; there are " + known
}

// readDocument reads plans first, which limits name.
func (p *fileReader) readDocument(n *yaml.Node) {
	var limits, plans, envoys *yaml.Node
	p.Fields(n, "the file", func(key, value *yaml.Node) {
		switch key.Value {
		case "domain", "descriptors":
			envoys = cmp.Or(envoys, key)
		case "limits":
			limits = value
		case "plans":
			plans = value
		default:
			if !strings.HasPrefix(key.Value, "x-") { // for what is used below by its anchor
				p.unknown(key, "limits, plans, and x-... for anchors")
			}
		}
	})
	if envoys != nil {
		p.Fail(envoys, "unknown field "+yamlfile.QuoteWord(envoys.Value)+", as in a file for --envoy-config: check it by cellserver config check --grpc-addr "+
			"127.0.0.1:6382 --envoy-config DIRECTORY, or translate it by cellserver limits import")
	}
	if plans != nil {
		p.Fields(plans, "plans", p.readPlan)
		if n := len(p.read.Plans); n > namedlimit.MaxPlans {
			p.Fail(plans, fmt.Sprintf("%d plans; the maximum is %d", n, namedlimit.MaxPlans))
		}
	}
	if limits != nil {
		p.Fields(limits, "limits", p.readLimit)
	} else if p.Count() == 0 {
		p.Fail(n, "limits is missing")
	}
	if n := len(p.read.Limits); n > namedlimit.MaxNames {
		p.FailAt(1, fmt.Sprintf("%d limits; the maximum is %d", n, namedlimit.MaxNames))
	}
}

func (p *fileReader) readPlan(key, value *yaml.Node) {
	name := key.Value
	if err := namedlimit.CheckName([]byte(name)); err != nil {
		p.Fail(key, yamlfile.QuoteWord(name)+": a plan's name"+strings.TrimPrefix(err.Error(), "a limit's name"))
		return
	}
	before, found := p.Count(), false
	p.read.Plans[name] = nil // known, even if it is wrong
	p.Fields(value, "the plan "+yamlfile.Word(name), func(key, value *yaml.Node) {
		if key.Value != "rules" {
			p.unknown(key, "rules")
			return
		}
		found = true
		p.read.Plans[name] = p.readRules(value)
	})
	if !found && p.Count() == before {
		p.Fail(key, "the plan "+yamlfile.Word(name)+" must have rules")
	}
}

func (p *fileReader) planOf(n *yaml.Node) (name string, rules []namedlimit.Rule) {
	name, ok := p.readText(n, "plan")
	if !ok {
		return "", nil
	}
	rules, known := p.read.Plans[name]
	if !known {
		p.Fail(n, "unknown plan "+yamlfile.QuoteWord(name)+p.plansThereAre())
	}
	return name, rules
}

// maxPlansListed bounds the plans in an error.
const maxPlansListed = 5

func (p *fileReader) plansThereAre() string {
	names := slices.Sorted(maps.Keys(p.read.Plans))
	for i := range names {
		names[i] = yamlfile.Word(names[i])
	}
	if len(names) == 0 {
		return "; define it under plans"
	}
	rest := ""
	if n := len(names) - maxPlansListed; n > 0 {
		names, rest = names[:maxPlansListed], fmt.Sprintf(" and %d more", n)
	}
	return "; there are " + strings.Join(names, ", ") + rest
}
