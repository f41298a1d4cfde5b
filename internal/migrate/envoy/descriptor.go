package envoy

import (
	"strings"

	"cellserver/internal/base/yamlfile"
)

// domain is a domain of one or several files.
type domain struct {
	name  string
	at    at
	top   level
	named map[string][]*descriptor // by the name of their rate limit
}

// level is a list of descriptors.
type level struct {
	all   []*descriptor
	byKey map[string][]*descriptor
	at    map[string]at // by key_value, as there
}

// descriptor is an entry of a level with what decides about requests.
type descriptor struct {
	at         at
	key, value string // no value stands for every value
	rate       *rate
	shadow     bool
	shadowAt   at
	below      level
}

// rate is a rate_limit.
type rate struct {
	unlimited bool
	count     uint32
	unit      string
	name      string
	nameAt    at
	replaces  []replaced
}

// replaced is an entry of replaces.
type replaced struct {
	at   at
	name string
}

func (d *descriptor) composite() string {
	if d.value == "" {
		return d.key
	}
	return d.key + "_" + d.value
}

func (d *descriptor) wild() bool { return strings.Contains(d.value, "*") }

func (d *descriptor) exact() bool { return d.value != "" && !d.wild() }

// add adds a descriptor, or reports one of the same key and value.
func (t *translator) add(l *level, d *descriptor) {
	if l.at == nil {
		l.at, l.byKey = map[string]at{}, map[string][]*descriptor{}
	}
	composite := d.composite()
	if first, found := l.at[composite]; found {
		t.fail(d.at, "descriptor "+yamlfile.Quote(composite)+" is in "+first.String()+" already; remove one")
		return
	}
	l.at[composite] = d.at
	if strings.Contains(d.key, "*") {
		t.note(d.at, "the key "+yamlfile.Quote(d.key)+" with a wildcard is not translated, nor what is below it; "+
			"list the keys it stands for")
		return
	}
	l.all = append(l.all, d)
	l.byKey[d.key] = append(l.byKey[d.key], d)
}

// candidates returns a key's descriptors in the order in which they are tried.
func (l *level) candidates(key string) (tried []*descriptor) {
	var wild, general []*descriptor
	for _, d := range l.byKey[key] {
		switch {
		case d.exact():
			tried = append(tried, d)
		case d.wild():
			wild = append(wild, d)
		default:
			general = append(general, d)
		}
	}
	return append(append(tried, wild...), general...)
}

// confusions notes keys of a level that differ by an underscore and more, which the composite does not tell
// apart.
func (t *translator) confusions(l *level) {
	noted := map[string]bool{}
	for _, d := range l.all {
		for i := 1; i < len(d.key) && !noted[d.key]; i++ {
			if d.key[i] != '_' || l.byKey[d.key[:i]] == nil {
				continue
			}
			key, value := yamlfile.Quote(d.key[:i]), d.key[i+1:]
			t.note(d.at, "key "+key+" with the value "+yamlfile.Quote(value)+" or "+yamlfile.Quote(value+"_...")+
				" is not told apart from key "+yamlfile.Quote(d.key)+" there, but is here; "+
				"add an override if such values are sent")
		}
		noted[d.key] = true
	}
	for _, d := range l.all {
		t.confusions(&d.below)
	}
}
