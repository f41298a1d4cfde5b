// Package table writes what the clients' checks gave as a page of Markdown, and reads the checks back from it. Its
// functions are for any goroutine.
package table

import (
	"fmt"
	"strings"
)

// Row is a client.
type Row struct {
	Client, Version string
	Cells           map[string]string // by check: Passed, Failed, or empty where it does not apply
	Handshake       []string          // commands that it sends when it connects
	Refused         []string          // those of them that the server answers with an error
	Notes           []string
}

// How a check ended.
const (
	Passed = "yes"
	Failed = "NO"
)

// inapplicable stands for a check that does not apply.
const inapplicable = "–"

// Check is a column: its name, and what it does.
type Check struct{ Name, Does string }

const head = `# Clients

Made by ` + "`make clients`" + `: it starts cellserver with a password and TLS, and has a program for each client, in the client's own
language, do what the client's users do. The programs are in [clients/](../clients/README.md).

`

// Page is the page for these rows.
func Page(checks []Check, rows []Row) string {
	page := new(strings.Builder)
	page.WriteString(head)
	writeRow := func(cells ...string) { fmt.Fprintf(page, "| %s |\n", strings.Join(cells, " | ")) }

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

	page.WriteString("\n| check | what is done |\n| --- | --- |\n")
	for _, check := range checks {
		writeRow(check.Name, check.Does)
	}
	page.WriteString("\nWhat each sends when it connects, before its user's first command:\n\n| client | commands | notes |\n| --- | --- | --- |\n")
	for _, row := range rows {
		notes := row.Notes
		if len(row.Refused) > 0 {
			notes = append([]string{"answered with an error, which it takes: " + strings.Join(row.Refused, ", ")}, notes...)
		}
		writeRow(row.Client, orDash(strings.Join(row.Handshake, ", ")), strings.Join(notes, "; "))
	}
	return page.String()
}

func orDash(cell string) string {
	if cell == "" {
		return inapplicable
	}
	return cell
}

// Differences are the places where two pages say other things of a check. Versions and handshakes may differ from
// machine to machine.
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

// cell is one of a page's table of checks.
type cell struct{ place, text string }

func find(cells []cell, place string) string {
	for _, c := range cells {
		if c.place == place {
			return c.text
		}
	}
	return ""
}

// cells reads a page's first table, without the versions.
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
