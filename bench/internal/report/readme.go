package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The lines that enclose a README's tables.
const (
	beginMarker = "<!-- bench: generated from here on -->"
	endMarker   = "<!-- bench: end of the generated part -->"
)

// UpdateReadme replaces the text between the markers in file by the tables, with links to the charts in
// chartDir.
func (r *Results) UpdateReadme(file, chartDir string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("report: readme: %w", err)
	}
	before, rest, ok := strings.Cut(string(b), beginMarker)
	_, after, ended := strings.Cut(rest, endMarker)
	if !ok || !ended {
		return fmt.Errorf("report: readme: %s lacks the lines %q and %q", file, beginMarker, endMarker)
	}
	charts, err := filepath.Rel(filepath.Dir(file), chartDir)
	if err != nil {
		return fmt.Errorf("report: readme: %w", err)
	}
	var tables strings.Builder
	if err := r.Markdown(&tables, filepath.ToSlash(charts)); err != nil {
		return err
	}
	text := before + beginMarker + "\n\n" + tables.String() + "\n" + endMarker + after
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return fmt.Errorf("report: readme: %w", err)
	}
	return nil
}
