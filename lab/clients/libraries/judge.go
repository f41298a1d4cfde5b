package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// gone is the part of a program that has no server: it shows what a library does with an error.
const gone = "gone"

// refusal begins what cellserver says of a command that it does not have.
const refusal = "cellserver keeps limits, not "

// row is a part of a library in the page's first table, or a library in its second.
type row struct {
	library, version, part string
	cell, strict           string // on cellserver, and with --require-ttl
}

// Verdicts of a part.
const (
	same    = "yes"
	refused = "refused: "
)

// verdict says what a part saw on the tested server. Only what the matrix says may be refused.
func verdict(control, tested seen) string {
	lib, _ := libraryNamed(control.Library)
	switch {
	case control.Error == tested.Error && slices.Equal(control.Saw, tested.Saw):
		return same
	case tested.Error != "" && control.Error == "" && slices.Contains(lib.refuses, control.Part):
		return refused + reason(tested.Error)
	case tested.Error != control.Error:
		return fmt.Sprintf("NO: %q; redis-server: %q", tested.Error, control.Error)
	default:
		return "NO: " + firstDifference(control.Saw, tested.Saw)
	}
}

// reason returns the sentence of an error that says what to send instead.
func reason(text string) string {
	if _, recipe, ok := strings.Cut(text, refusal); ok {
		_, text, _ = strings.Cut(recipe, ": ")
	}
	for _, end := range []string{"; see ", " script: ", ". "} {
		text, _, _ = strings.Cut(text, end)
	}
	if _, said, ok := strings.Cut(text, "Error: "); ok { // after the class of an exception
		text = said
	}
	return strings.TrimPrefix(strings.TrimSuffix(text, "."), "ERR ")
}

func firstDifference(control, tested []string) string {
	for i := range max(len(control), len(tested)) {
		was, is := at(control, i), at(tested, i)
		if was != is {
			return fmt.Sprintf("step %d saw %q; redis-server: %q", i+1, is, was)
		}
	}
	return ""
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "nothing"
}

// surprises returns how a program's result differs from what the matrix says.
func surprises(r result) (texts []string) {
	if len(r.control) != len(r.tested) || len(r.control) != len(r.strict) {
		counts := fmt.Sprintf("%d parts, on redis-server %d", len(r.tested), len(r.control))
		return []string{r.program.name + ": " + counts}
	}
	for i, control := range r.control {
		tested, name := r.tested[i], control.Library+", "+control.Part
		lib, known := libraryNamed(control.Library)
		switch v := verdict(control, tested); {
		case !known:
			texts = append(texts, name+": not in the matrix")
		case control.Error != "":
			texts = append(texts, fmt.Sprintf("%s: on redis-server: %s", name, control.Error))
		case v == same && slices.Contains(lib.refuses, control.Part):
			texts = append(texts, name+": it runs, the matrix says that it is refused")
		case strings.HasPrefix(v, "NO"):
			texts = append(texts, name+": "+v)
		case (verdict(tested, r.strict[i]) != same) != slices.Contains(lib.endless, control.Part):
			texts = append(texts, name+", --require-ttl: "+verdict(tested, r.strict[i]))
		}
	}
	return texts
}

// judge returns the rows of the page, and what is not as the matrix says.
func judge(results []result) (rows []row, failures []string) {
	for _, r := range results {
		failures = append(failures, surprises(r)...)
		for i := range min(len(r.control), len(r.tested), len(r.strict)) {
			c := r.control[i]
			line := row{library: c.Library, version: c.Version, part: c.Part, cell: verdict(c, r.tested[i])}
			switch {
			case c.Part == gone:
				line.cell = strings.Join(c.Saw, "; ")
			case line.cell != same:
				line.strict = "–"
			case verdict(r.tested[i], r.strict[i]) == same:
				line.strict = same
			default:
				line.strict = "no"
			}
			rows = append(rows, line)
		}
	}
	return rows, failures
}

// printAll prints what the libraries saw.
func printAll(w io.Writer, results []result) error {
	for _, r := range results {
		if r.missing != "" || r.err != nil {
			_, _ = fmt.Fprintf(w, "%s: missing %q, %v\n", r.program.name, r.missing, r.err)
		}
		for i := range min(len(r.control), len(r.tested)) {
			c, t := r.control[i], r.tested[i]
			_, _ = fmt.Fprintf(w, "%s, %s: %s\n", c.Library, c.Part, verdict(c, t))
			for j := range max(len(c.Saw), len(t.Saw)) {
				was, is := at(c.Saw, j), at(t.Saw, j)
				if was == is {
					_, _ = fmt.Fprintf(w, "    %s\n", is)
					continue
				}
				_, _ = fmt.Fprintf(w, "    %s\n      redis-server: %s\n", is, was)
			}
			if t.Error != "" {
				_, _ = fmt.Fprintf(w, "    %s\n", t.Error)
			}
		}
	}
	return nil
}
