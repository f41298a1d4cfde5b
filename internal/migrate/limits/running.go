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
	"strings"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/namedlimit/limitsfile"
	"cellserver/internal/funnel"
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
