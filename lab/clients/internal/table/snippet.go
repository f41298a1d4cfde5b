package table

import (
	"errors"
	"fmt"
	"strings"
)

// The comments around the lines of a program that the page shows.
const (
	snippetBegin = "sentinel: begin"
	snippetEnd   = "sentinel: end"
)

// Snippet returns the lines of a program between the comments "sentinel: begin" and "sentinel: end", of each
// such pair, without their common indentation.
func Snippet(source string) (string, error) {
	var blocks []string
	var block []string
	inside := false
	for line := range strings.Lines(source) {
		switch {
		case strings.HasSuffix(strings.TrimSpace(line), snippetBegin):
			if inside {
				return "", errors.New("table: a snippet begins inside another")
			}
			inside, block = true, nil
		case strings.HasSuffix(strings.TrimSpace(line), snippetEnd):
			if !inside {
				return "", errors.New("table: a snippet ends before it begins")
			}
			inside = false
			blocks = append(blocks, outdented(block))
		case inside:
			block = append(block, line)
		}
	}
	if inside || len(blocks) == 0 {
		return "", fmt.Errorf("table: no snippet from %q to %q", snippetBegin, snippetEnd)
	}
	return strings.Join(blocks, "\n"), nil
}

// outdented removes the first line's indentation from all.
func outdented(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	indent := lines[0][:len(lines[0])-len(strings.TrimLeft(lines[0], " \t"))]
	text := new(strings.Builder)
	for _, line := range lines {
		text.WriteString(strings.TrimPrefix(line, indent))
	}
	return text.String()
}
