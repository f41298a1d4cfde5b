package replicas

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Definition is a named limit or a plan, as two servers compare theirs.
type Definition struct {
	Name   string // of a plan, "plan " and its name
	OfFile bool   // else a command has defined it, and it follows with the changes
	Digest uint64 // equal in every process and version for equal definitions
}

// Definitions are those in force at one moment.
type Definitions struct {
	All    []Definition // by name
	Digest uint64       // of all
}

// NewDefinitions sorts definitions, and digests them.
func NewDefinitions(all []Definition) Definitions {
	slices.SortFunc(all, func(a, b Definition) int { return cmp.Compare(a.Name, b.Name) })
	digest := Digest(0, "")
	for _, d := range all {
		digest = Digest(digest, fmt.Sprint(d.Name, " ", d.OfFile, " ", d.Digest, "\n"))
	}
	return Definitions{all, digest}
}

// Digest goes on with a digest, 0 for a new one, by FNV-1a.
func Digest(digest uint64, text string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	if digest == 0 {
		digest = offset
	}
	for i := range len(text) {
		digest = (digest ^ uint64(text[i])) * prime
	}
	return digest
}

// Differing returns the names that a replica has otherwise than its leader, or that one of them lacks.
// Changes bring what commands have defined on both.
func (d Definitions) Differing(leader Definitions) []string {
	own := make(map[string]Definition, len(d.All))
	for _, o := range d.All {
		own[o.Name] = o
	}
	var names []string
	for _, l := range leader.All {
		o, has := own[l.Name]
		if delete(own, l.Name); (l.OfFile || o.OfFile) && (!has || o.Digest != l.Digest) {
			names = append(names, l.Name)
		}
	}
	maps.DeleteFunc(own, func(_ string, o Definition) bool { return !o.OfFile })
	names = slices.AppendSeq(names, maps.Keys(own))
	slices.Sort(names)
	return names
}

// mostNamed bounds the names in a text.
const mostNamed = 10

// SomeNames returns the first of the names as a text, and how many follow.
func SomeNames(names []string) string {
	if len(names) <= mostNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), len(names)-mostNamed)
}
