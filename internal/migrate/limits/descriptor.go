package limits

import (
	"strings"

	"cellserver/internal/base/yamlfile"
	"cellserver/internal/decide/envoyconfig"
)

type (
	at         = envoyconfig.Line
	level      = envoyconfig.Level
	descriptor = envoyconfig.Descriptor
)

func isExact(d *descriptor) bool { return d.Value != "" && !strings.Contains(d.Value, "*") }

// index has the descriptors of levels by key.
type index map[*level]map[string][]*descriptor

// add adds a level and those below it.
func (x index) add(l *level) {
	byKey := map[string][]*descriptor{}
	for _, d := range l.All {
		byKey[d.Key] = append(byKey[d.Key], d)
		x.add(&d.Below)
	}
	x[l] = byKey
}

// candidates returns a key's descriptors in the order in which they are tried.
func (x index) candidates(l *level, key string) (tried []*descriptor) {
	var wild, general []*descriptor
	for _, d := range x[l][key] {
		switch {
		case isExact(d):
			tried = append(tried, d)
		case d.Value != "":
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
	for _, d := range l.All {
		for i := 1; i < len(d.Key) && !noted[d.Key]; i++ {
			if d.Key[i] != '_' || t.index[l][d.Key[:i]] == nil {
				continue
			}
			key, value := yamlfile.Quote(d.Key[:i]), d.Key[i+1:]
			t.note(d.At, "key "+key+" with the value "+yamlfile.Quote(value)+" or "+yamlfile.Quote(value+"_...")+
				" is not told apart from key "+yamlfile.Quote(d.Key)+" there, but is here; "+
				"add an override if such values are sent")
		}
		noted[d.Key] = true
	}
	for _, d := range l.All {
		t.confusions(&d.Below)
	}
}
