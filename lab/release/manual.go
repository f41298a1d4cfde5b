package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cellserver/internal/app/cli"
	"cellserver/internal/app/settings"
	"cellserver/internal/app/usage"
	"cellserver/internal/base/buildinfo"
)

// writePages writes a manual page for each command into a directory.
func writePages(dir string) error {
	root, groups := cli.Root(cli.Program{})
	m := manual{root: root, groups: groups, date: manualDate(buildinfo.Read(), os.Getenv("SOURCE_DATE_EPOCH"))}
	return m.write(dir, root)
}

// manualDate returns the day of the source, so that rebuilt pages are equal.
func manualDate(info buildinfo.Info, epoch string) string {
	at := info.Time
	if sec, err := strconv.ParseInt(epoch, 10, 64); err == nil {
		at = time.Unix(sec, 0)
	}
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.DateOnly)
}

// manualWidth is the text's width in the source; man(1) refills it.
const manualWidth = 120

// manual writes a page per command in the language of man(7).
type manual struct {
	root   *cobra.Command
	groups []settings.FlagGroup // of the root
	date   string
}

// write writes the pages of a command and those below it.
func (m manual) write(dir string, cmd *cobra.Command) error {
	path := filepath.Join(dir, pageName(cmd)+".1")
	if err := os.WriteFile(path, []byte(m.page(cmd)), 0o644); err != nil { //nolint:gosec // a manual is for all to read
		return fmt.Errorf("man: %w", err)
	}
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() {
			if err := m.write(dir, below); err != nil {
				return err
			}
		}
	}
	return nil
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

func (m manual) page(cmd *cobra.Command) string {
	var b strings.Builder
	name := pageName(cmd)
	fmt.Fprintf(&b, ".TH %s 1 \"%s\" \"cellserver %s\"\n", strings.ToUpper(roff(name)), m.date, buildinfo.Version)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(manualSummary(cmd)))
	b.WriteString(".SH SYNOPSIS\n")
	for i, line := range cli.UsageLines(cmd) {
		if i > 0 {
			b.WriteString(".br\n")
		}
		fmt.Fprintf(&b, ".B %s\n", roff(line.Name))
	}
	b.WriteString(".SH DESCRIPTION\n")
	roffText(&b, cli.About(cmd))
	m.flags(&b, cmd)
	if cmd == m.root {
		b.WriteString(manualSections)
	}
	exits(&b, cmd)
	if cmd.Example != "" {
		b.WriteString(".SH EXAMPLES\n")
		roffBlock(&b, cmd.Example)
	}
	m.seeAlso(&b, cmd)
	return b.String()
}

func manualSummary(cmd *cobra.Command) string {
	if !cmd.HasParent() {
		return "a rate limiter that speaks the Redis protocol"
	}
	return cmd.Short
}

func (m manual) flags(b *strings.Builder, cmd *cobra.Command) {
	b.WriteString(".SH OPTIONS\n")
	groups := m.groups
	if cmd != m.root {
		groups = []settings.FlagGroup{{Flags: cmd.Flags()}}
	}
	for _, g := range groups {
		if cmd == m.root {
			fmt.Fprintf(b, ".SS %s\n", roff(g.Title))
		}
		g.Flags.VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			kind, usage := cli.Describe(f)
			name := "--" + f.Name
			if f.Shorthand != "" {
				name = "-" + f.Shorthand + ", " + name
			}
			fmt.Fprintf(b, ".TP\n.B %s", roff(name))
			if kind != "" {
				fmt.Fprintf(b, " \\fI%s\\fR", roff(kind))
			}
			b.WriteString("\n" + roff(strings.ToUpper(usage[:1])+usage[1:]) + ".\n")
		})
	}
}

const manualSections = `.SH CONFIG FILE
A file of YAML that
.B \-\-config
names: a mapping of options, without their hyphens, to values. Unknown and repeated names are refused.
.B cellserver config example
writes one with all settings and their defaults,
.B cellserver config check
checks one, and
.B cellserver config show
shows the source of each setting.
.SH ENVIRONMENT
Every option can be set by a variable:
.B \-\-metrics\-addr
by
.BR CELLSERVER_METRICS_ADDR .
An option overrides a variable, and a variable the config file.
.SH TIMES
A time is written as 30s, 1m30s or 500ms, or as seconds: 30 or 0.5. Those that are milliseconds in Redis
.RB ( \-\-lua\-time\-limit ,
.BR \-\-store\-timeout )
require a unit.
.SH SIGNALS
.TP
.B SIGTERM, SIGINT
A graceful shutdown. A second one ends the server immediately.
.TP
.B SIGHUP
Reads certificates, secrets, users, named limits and the config file again;
a server that is starting does so once it serves clients.
Files with mistakes are logged, and their previous content stays in use.
Other commands end as on SIGTERM.
.SH FILES
.TP
.I /usr/share/doc/cellserver/docs
The documents of a package, to which errors refer as docs/RECIPES.md.
An archive has them in its directory
.IR docs .
`

func exits(b *strings.Builder, cmd *cobra.Command) {
	for i, e := range usage.ExitsOf(cmd) {
		if i == 0 {
			b.WriteString(".SH EXIT STATUS\n")
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s.\n", e.Code, roff(strings.ToUpper(e.Meaning[:1])+e.Meaning[1:]))
	}
}

func (m manual) seeAlso(b *strings.Builder, cmd *cobra.Command) {
	var pages []string
	if cmd.HasParent() {
		pages = append(pages, pageName(cmd.Parent()))
	}
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() {
			pages = append(pages, pageName(below))
		}
	}
	b.WriteString(".SH SEE ALSO\n")
	for i, page := range pages {
		end := ","
		if i == len(pages)-1 {
			end = ""
		}
		fmt.Fprintf(b, ".BR %s (1)%s\n", roff(page), end)
	}
}

// roff escapes text so that no line is taken for a request.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// roffText writes paragraphs; indented ones stay as they are.
func roffText(b *strings.Builder, text string) {
	for i, p := range strings.Split(text, "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		if usage.IsTable(p) {
			roffBlock(b, p)
			continue
		}
		b.WriteString(roff(usage.Wrap(p, manualWidth)) + "\n")
	}
}

func roffBlock(b *strings.Builder, text string) {
	b.WriteString(".nf\n")
	for line := range strings.Lines(text) {
		b.WriteString(roff(strings.TrimRight(line, "\n")) + "\n")
	}
	b.WriteString(".fi\n")
}
