// Package envoyconfig reads configurations of envoyproxy/ratelimit and finds the limit of a request's
// descriptor. Rules are immutable; a Store is safe for concurrent use.
//
// The model is src/config/config_impl.go of envoyproxy/ratelimit at f2fb157. Each level compares "key_value"
// as a whole, so that the key a with the value b_c is also the key a_b with the value c. An exact value
// precedes wildcards, which are tried in the file's order, and those precede a key alone; a match is final,
// even if nothing below it fits. A limit applies to descriptors of as many entries as it has levels.
package envoyconfig

import (
	"strconv"

	"google.golang.org/protobuf/types/known/structpb"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/wire/glob"
)

type File struct {
	Path string
	Text []byte
}

type Options struct {
	// MergeDomains is MERGE_DOMAIN_CONFIG: files may have the same domain.
	MergeDomains bool
	// AllFiles reads the files of a directory, and of those below it, whatever their extension. A missing one
	// is an empty configuration.
	AllFiles bool
	// IgnoreDotFiles has AllFiles skip names that begin with a dot. Those that begin with two, as the
	// directories of a ConfigMap, are always skipped: links lead to what they have.
	IgnoreDotFiles bool
}

// Rules are what files say.
type Rules struct {
	Domains []*Domain
	Notes   []Note   // of what may be a mistake
	Files   int      // of a directory
	Skipped []string // names in the directory that are not read
	byName  map[string]*Domain
	limits  []Limit
	id      uint32 // of cursors
}

func (r *Rules) Domain(name string) *Domain { return r.byName[name] }

// Line is where something is said.
type Line struct {
	File int    // its position, or that of a resource
	Path string // with what it is a descriptor of, in a resource
	Line int    // 0 in a resource
}

func (l Line) String() string {
	if l.Line == 0 {
		return l.Path
	}
	return l.Path + ":" + strconv.Itoa(l.Line)
}

// Note is a remark about a line.
type Note struct {
	At   Line
	Text string
}

func (n Note) String() string { return n.At.String() + ": " + n.Text }

// Domain is a domain of one or several files.
type Domain struct {
	Name         string
	At           Line
	AllOrNothing bool // requests charge all of their descriptors, or none
	TogetherAt   Line // of all_or_nothing
	Top          Level

	first, count int // its limits among those of all
}

type Level struct {
	All         []*Descriptor
	byComposite map[string]*Descriptor
	wild        []*Descriptor // with a wildcard in the key or the value
}

// each visits the descriptors of a level and of those below it.
func (l *Level) each(visit func(l *Level, d *Descriptor)) {
	for _, d := range l.All {
		visit(l, d)
		d.Below.each(visit)
	}
}

type Descriptor struct {
	At            Line
	Key, Value    string // no value stands for every value
	Rate          *Rate  // nil for none
	Shadow        bool   // denies nothing
	Quota         bool   // requests are denied only if all of their descriptors with Quota are over the limit
	Shared        bool   // values of a wildcard have one count
	Detailed      bool   // metrics count by the values of requests
	ValueToMetric bool   // metrics have the value of the request where the configuration has none
	Metadata      *structpb.Struct
	Below         Level

	Path    string // composites from the top, joined by dots, for metrics
	fields  map[string]Line
	pattern *glob.Pattern // of a wildcard
}

// Rate is a rate_limit.
type Rate struct {
	Unlimited bool
	Count     uint32 // requests_per_unit
	Unit      string // second to year; "" if Unlimited
	Algorithm namedlimit.Algorithm
	Name      string
	NameAt    Line
	Replaces  []Replaced
}

// Replaced is an entry of replaces.
type Replaced struct {
	At   Line
	Name string
}

// FieldAt returns the line of a field, or that of the descriptor if its fields have none.
func (d *Descriptor) FieldAt(name string) Line {
	if at, ok := d.fields[name]; ok {
		return at
	}
	return d.At
}

// Composite returns the key and the value by which a level knows the descriptor.
func (d *Descriptor) Composite() string {
	if d.Value == "" {
		return d.Key
	}
	return d.Key + "_" + d.Value
}

// Parse reads files. The error has one line and names all invalid lines, as FILE:LINE.
func Parse(files []File, o Options) (*Rules, error) {
	p := newParser(o)
	p.merge = "merge the files (limits import has --merge-domains)"
	for at := range files {
		p.read(&files[at], at)
	}
	return p.done()
}
