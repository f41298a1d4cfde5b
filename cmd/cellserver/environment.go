package main

import (
	"log/slog"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// warnOfUnknownVariables warns of the variables that look like settings and are none, as a misspelt password is. It never
// logs their values, which may be secrets.
func warnOfUnknownVariables(environ []string, log *slog.Logger) {
	var settings []string
	for _, g := range (&options{}).flagGroups() {
		g.flags.VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && f.Name != "version" {
				settings = append(settings, envName(f.Name))
			}
		})
	}
	services := regexp.MustCompile(serviceVariables)
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, envPrefix) || slices.Contains(settings, name) || services.MatchString(name) ||
			strings.HasSuffix(name, "_PORT") && strings.Contains(value, "://") { // which a service's has, but not who imagines a setting
			continue
		}
		hint := "see cellserver --help"
		if nearest := nearestName(name, settings); nearest != "" {
			hint = "did you mean " + nearest + "?"
		}
		log.Warn(name + " is no setting of the server and has no effect; " + hint)
	}
}

// serviceVariables matches what Kubernetes sets for services that are named cellserver or begin so; _PORT is apart.
const serviceVariables = `^CELLSERVER(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`

// nearestName returns the name with the fewest edits, unless that is half of it or more.
func nearestName(name string, names []string) (nearest string) {
	fewest := (len(name) - len(envPrefix) + 1) / 2
	for _, other := range names {
		if n := edits(name, other); n < fewest {
			nearest, fewest = other, n
		}
	}
	return nearest
}

// edits is the Levenshtein distance of two texts: how many bytes must be inserted, removed or replaced.
func edits(a, b string) int {
	row := make([]int, len(b)+1) // of the part of a so far, to each beginning of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			n := diagonal
			if a[i] != b[j] {
				n = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], n
		}
	}
	return row[len(b)]
}
