// Package table writes the results of the clients' checks as a section of a Markdown page, and reads them
// back from it.
// Its functions are safe for concurrent use.
package table

import (
	"fmt"
	"strings"
)

// Row is a client.
type Row struct {
	Client, Version string
	Cells           map[string]string // by check: Passed, Failed, or empty if it does not apply
	Notes           []string
}

// The results of a check.
const (
	Passed = "yes"
	Failed = "NO"
)

// inapplicable marks a check that does not apply.
const inapplicable = "–"

// Check is a column: its name, and what the check does.
type Check struct{ Name, Does string }

const head = `
## Tested clients

` + "`make clients`" + ` starts cellserver with a password and TLS, and runs a program for each client, in the client's own
language, that uses the client as its users do. The programs are in [lab/clients](../lab/clients/README.md).

`

// Section returns the section for these rows.
func Section(checks []Check, rows []Row) string {
	section := new(strings.Builder)
	section.WriteString(head)
	writeRow := func(cells ...string) { fmt.Fprintf(section, "| %s |\n", strings.Join(cells, " | ")) }

	header := []string{"client", "version"}
	for _, check := range checks {
		header = append(header, check.Name)
	}
	writeRow(header...)
	rule := make([]string, len(header))
	for i := range rule {
		rule[i] = "---"
	}
	writeRow(rule...)
	for _, row := range rows {
		cells := []string{row.Client, row.Version}
		for _, check := range checks {
			cells = append(cells, orDash(row.Cells[check.Name]))
		}
		writeRow(cells...)
	}

	section.WriteString("\n| check | what it does |\n| --- | --- |\n")
	for _, check := range checks {
		writeRow(check.Name, check.Does)
	}
	section.WriteString("\n")
	for _, row := range rows {
		for _, note := range row.Notes {
			fmt.Fprintf(section, "- %s: %s.\n", row.Client, note)
		}
	}
	return section.String()
}

func orDash(cell string) string {
	if cell == "" {
		return inapplicable
	}
	return cell
}

// Differences returns where two sections have different results. Versions may differ between machines.
func Differences(was, is string) (differences []string) {
	before, after := cells(was), cells(is)
	for _, c := range after {
		if was := find(before, c.place); was != c.text {
			differences = append(differences, fmt.Sprintf("%s is %q, the page has %q", c.place, c.text, was))
		}
	}
	for _, c := range before {
		if find(after, c.place) == "" {
			differences = append(differences, fmt.Sprintf("%s is gone, the page has %q", c.place, c.text))
		}
	}
	return differences
}

// cell is a cell of a page's table of checks.
type cell struct{ place, text string }

func find(cells []cell, place string) string {
	for _, c := range cells {
		if c.place == place {
			return c.text
		}
	}
	return ""
}

// cells reads a section's first table, without the versions.
func cells(page string) (cells []cell) {
	const versionColumn = 1
	var header []string
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "| ") {
			if header != nil {
				break
			}
			continue
		}
		fields := strings.Split(strings.Trim(line, "| \n"), " | ")
		if header == nil {
			header = fields
			continue
		}
		if fields[0] == "---" {
			continue
		}
		for i, field := range fields {
			if i > versionColumn && i < len(header) {
				cells = append(cells, cell{place: fields[0] + ", " + header[i], text: field})
			}
		}
	}
	return cells
}
