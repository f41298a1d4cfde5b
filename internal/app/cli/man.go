package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cellserver/internal/app/usage"
	"cellserver/internal/base/buildinfo"
	"cellserver/internal/base/wrap"
)

// manCommand writes the manual, for who makes packages.
func manCommand(help *helpPrinter) *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "write the manual pages into a directory", Hidden: true,
		Args: usage.ExactlyOne("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m := manual{root: cmd.Root(), help: help, date: manualDate(buildinfo.Read(), os.Getenv("SOURCE_DATE_EPOCH"))}
			return m.write(args[0], m.root)
		},
	}
}

// manualDate is the day of the source, so that the pages are the same whenever they are made.
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

// manualWidth is that of the pages' text before man(1) fills it.
const manualWidth = 120

// manual is the pages in the language of man(7), one a command.
type manual struct {
	root *cobra.Command
	help *helpPrinter // which knows the groups of flags
	date string
}

// write writes a command's page, and those of the commands below it.
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
	for i, line := range usageLines(cmd) {
		if i > 0 {
			b.WriteString(".br\n")
		}
		fmt.Fprintf(&b, ".B %s\n", roff(line.use))
	}
	b.WriteString(".SH DESCRIPTION\n")
	roffText(&b, about(cmd))
	m.flags(&b, cmd)
	if cmd == m.root {
		b.WriteString(manualSections)
	}
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

// flags are a section, with a heading for each group.
func (m manual) flags(b *strings.Builder, cmd *cobra.Command) {
	b.WriteString(".SH OPTIONS\n")
	for _, g := range m.help.groupsOf(cmd) {
		if cmd == m.root {
			fmt.Fprintf(b, ".SS %s\n", roff(g.Title))
		}
		g.Flags.VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			kind, usage := describe(f)
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
names: a mapping of options, without their hyphens, to values. Unknown names, and names that are there twice, are refused.
.B cellserver config example
writes one with all settings and their defaults,
.B cellserver config check
checks one, and
.B cellserver config show
tells where each setting is from.
.SH ENVIRONMENT
Every option can be set by a variable:
.B \-\-metrics\-addr
by
.BR CELLSERVER_METRICS_ADDR .
An option goes before a variable, and that before the config file.
.SH TIMES
A time is written as 30s, 1m30s or 500ms, or as seconds: 30 or 0.5. Those that Redis has in milliseconds
.RB ( \-\-lua\-time\-limit ,
.BR \-\-store\-timeout )
require a unit.
.SH SIGNALS
.TP
.B SIGTERM, SIGINT
A graceful shutdown. A second one ends the server at once.
.TP
.B SIGHUP
Certificates, secrets, users, named limits and the config file are read again;
by a server that is starting, once it serves clients.
What cannot be used is logged, and what was there before stays.
Other commands end by it as by SIGTERM.
.SH FILES
.TP
.I /usr/share/doc/cellserver/docs
The documents of a package, which errors name as docs/RECIPES.md and the like.
An archive has them in its directory
.IR docs .
.SH EXIT STATUS
.TP
.B 0
The server was shut down, or the command did what it should.
.TP
.B 1
An error.
.TP
.B 2
A mistake in the command line, a variable or the config file.
`

// seeAlso names the pages of the command above, and of those below.
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

// roff makes text that no line of which is taken for a request.
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

// roffText is paragraphs, of which those with indented lines stay as they are.
func roffText(b *strings.Builder, text string) {
	for i, p := range strings.Split(text, "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		if wrap.IsTable(p) {
			roffBlock(b, p)
			continue
		}
		b.WriteString(roff(wrap.Text(p, manualWidth)) + "\n")
	}
}

func roffBlock(b *strings.Builder, text string) {
	b.WriteString(".nf\n")
	for line := range strings.Lines(text) {
		b.WriteString(roff(strings.TrimRight(line, "\n")) + "\n")
	}
	b.WriteString(".fi\n")
}
