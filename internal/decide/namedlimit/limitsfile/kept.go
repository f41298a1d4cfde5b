package limitsfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/limiter/calendar"
)

// Definitions by commands are kept in one file, replaced as a whole, as readable text:
//
//	cellserver limits, format 3
//	api FUNNEL 20 10 1 QUOTA 1000 DAY TZ Europe/Berlin
//	login FUNNEL 5 5 60 shadow
//	spend QUOTA 50000000 MONTH UNIT usd MAXRESERVATION 0.5
//	crc32c 1a2b3c4d
//
// A line has a limit's name and what decides, as a command takes it; the second number of FUNNEL is the
// capacity. Format 2 has no UNIT and MAXRESERVATION, and is written where there are none, so that earlier
// versions read it. In format 1 a line has, for each window, the capacity, the count and the period in
// seconds. The last line is disk.AppendSum's.
const (
	KeptName = "LIMITS"

	keptFormat   = 3
	maxKeptBytes = 4 << 20 // exceeds MaxNames limits of MaxRules rules
)

// CheckKept reads a directory's definitions and returns their number and bytes. It returns fs.ErrNotExist
// without a file, persist.ErrDamaged, persist.ErrNewer, or the directory's error.
func CheckKept(dir disk.Dir) (n int, size int64, err error) {
	f, err := dir.Open(KeptName)
	if err != nil {
		return 0, 0, err
	}
	size = f.Size()
	_ = f.Close() // nothing was written
	kept, err := readKept(dir)
	return len(kept), size, err
}

// readKept returns nothing without a file.
func readKept(dir disk.Dir) ([]namedlimit.Definition, error) {
	text, err := disk.ReadAll(dir, KeptName, maxKeptBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseKept(text)
}

func keptText(definitions []namedlimit.Definition) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "cellserver limits, format %d\n", formatOf(definitions))
	for i := range definitions {
		b.WriteString(limitLine(&definitions[i], definitions[i].Words(funnel.Capacity)))
	}
	return disk.AppendSum(b.Bytes())
}

// formatOf returns the earliest format that has all of the definitions.
func formatOf(definitions []namedlimit.Definition) int {
	if slices.ContainsFunc(definitions, func(d namedlimit.Definition) bool { return d.OptionWords() != nil }) {
		return keptFormat
	}
	return keptFormat - 1
}

func limitLine(d *namedlimit.Definition, words []string) string {
	line := strings.Join(slices.Concat([]string{d.Name}, words, d.OptionWords()), " ")
	if d.Shadow {
		line += " shadow"
	}
	return line + "\n"
}

func parseKept(text []byte) (definitions []namedlimit.Definition, err error) {
	damaged := fmt.Errorf("%w: %s", persist.ErrDamaged, KeptName)
	text, ok := disk.CutSum(text)
	header, body, isLine := strings.Cut(string(text), "\n")
	if !ok || !isLine {
		return nil, damaged
	}
	var version int
	if n, _ := fmt.Sscanf(header, "cellserver limits, format %d", &version); n != 1 || version < 1 {
		return nil, damaged
	}
	if version > keptFormat {
		return nil, &persist.NewerError{File: KeptName, Format: version, Newest: keptFormat}
	}
	if header != fmt.Sprintf("cellserver limits, format %d", version) {
		return nil, damaged
	}
	seen, zones := map[string]bool{}, anyZone()
	for line := range strings.Lines(body) {
		d, ok := parseLimit(line, version)
		if !ok || checkShape(&d, zones) != nil || seen[d.Name] {
			return nil, damaged
		}
		seen[d.Name] = true
		definitions = append(definitions, d)
	}
	if len(definitions) > namedlimit.MaxNames {
		return nil, damaged
	}
	return definitions, nil
}

// parseLimit parses a line, with nothing unknown in it: written again, it is unchanged.
func parseLimit(line string, version int) (d namedlimit.Definition, ok bool) {
	words := strings.Split(strings.TrimSuffix(line, "\n"), " ")
	d.Name, d.Near, words = words[0], namedlimit.DefaultNear, words[1:]
	var again []string
	switch version {
	case 1:
		if n := len(words); n > 0 && words[n-1] == "shadow" {
			d.Shadow, words = true, words[:n-1]
		}
		d.Rules, ok = parseWindows(words)
		for _, r := range d.Rules {
			again = append(again, r.Words(funnel.Capacity)[1:]...)
		}
	default:
		var rest []string
		var err error
		if d.Policy, rest, err = namedlimit.ReadPolicy(words, funnel.Capacity); err == nil {
			rest, err = d.ReadOptions(rest)
		}
		ok, again = err == nil && len(rest) == 0 && (version >= keptFormat || d.OptionWords() == nil), d.Words(funnel.Capacity)
	}
	return d, ok && limitLine(&d, again) == line
}

// checkShape checks a definition, but not whether its plan is known.
func checkShape(d *namedlimit.Definition, zones *calendar.Set) error {
	if d.Plan != "" {
		return cmp.Or(namedlimit.CheckName([]byte(d.Name)), namedlimit.CheckName([]byte(d.Plan)))
	}
	return d.Check(zones)
}

func parseWindows(words []string) (rules []namedlimit.Rule, ok bool) {
	if len(words)%3 != 0 {
		return nil, false
	}
	for ; len(words) > 0; words = words[3:] {
		var r namedlimit.Rule
		for i, into := range []*int64{&r.Capacity, &r.Count, &r.PeriodSec} {
			n, err := strconv.ParseInt(words[i], 10, 64)
			if err != nil {
				return nil, false
			}
			*into = n
		}
		rules = append(rules, r)
	}
	return rules, true
}
