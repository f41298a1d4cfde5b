package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"cellserver/internal/app/ratelimit"
	"cellserver/internal/app/settings"
	"cellserver/internal/app/usage"
)

// Bounds of the width of help, which is otherwise the terminal's.
const (
	minHelpWidth   = 30
	maxHelpWidth   = 120
	plainHelpWidth = 100 // without a terminal
)

type helpPrinter struct {
	groups []settings.FlagGroup // of the root
	err    error                // of the last help printed
}

func (p *helpPrinter) print(cmd *cobra.Command, _ []string) {
	out := cmd.OutOrStdout()
	_, p.err = io.WriteString(out, p.text(cmd, helpWidth(out)))
}

func helpWidth(out io.Writer) int {
	f, ok := out.(*os.File)
	if !ok {
		return plainHelpWidth
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width == 0 {
		return plainHelpWidth
	}
	return min(max(width-1, minHelpWidth), maxHelpWidth) // a full line would wrap the cursor
}

func (p *helpPrinter) text(cmd *cobra.Command, width int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage:\n", usage.Wrap(About(cmd), width))
	printUsage(&b, cmd, width)
	groups := p.groupsOf(cmd)
	for _, g := range groups {
		b.WriteString("\n" + g.Title + ":\n")
		printFlags(&b, g.Flags, width)
	}
	if cmd.Name() == ratelimit.Name {
		printVariables(&b, width)
	}
	if note := settingsNote(cmd, groups); note != "" {
		fmt.Fprintf(&b, "\n%s\n", usage.Wrap(note, width))
	}
	printExits(&b, cmd, width)
	if cmd.Example != "" {
		title := "Example"
		if strings.Contains(cmd.Example, "\n  cellserver ") {
			title = "Examples"
		}
		fmt.Fprintf(&b, "\n%s:\n%s\n", title, cmd.Example)
	}
	return b.String()
}

// About returns the first paragraphs of a command's help.
func About(cmd *cobra.Command) string {
	if cmd.Long == "" {
		return strings.ToUpper(cmd.Short[:1]) + cmd.Short[1:] + "."
	}
	return cmd.Long
}

func (p *helpPrinter) groupsOf(cmd *cobra.Command) []settings.FlagGroup {
	if cmd.HasParent() {
		return []settings.FlagGroup{{Title: "Flags", Flags: cmd.Flags()}}
	}
	return p.groups
}

// UsageLines returns the ways to call a command and those below it.
func UsageLines(cmd *cobra.Command) (lines []Row) {
	if !cmd.HasParent() || !cmd.HasAvailableSubCommands() {
		lines = append(lines, Row{Name: cmd.UseLine()})
	}
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() || below.Name() == "help" {
			lines = append(lines, Row{below.UseLine(), below.Short})
		}
	}
	if len(lines) > 1 && !cmd.HasParent() {
		lines[0].Text = cmd.Short
	}
	return lines
}

func printUsage(b *strings.Builder, cmd *cobra.Command, width int) {
	var rows []Row
	for _, l := range UsageLines(cmd) {
		rows = append(rows, Row{"  " + l.Name, l.Text})
	}
	printRows(b, rows, width)
}

func printFlags(b *strings.Builder, fs *pflag.FlagSet, width int) {
	var rows []Row
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		kind, usage := Describe(f)
		name := "      --" + f.Name
		if f.Shorthand != "" {
			name = "  -" + f.Shorthand + ", --" + f.Name
		}
		rows = append(rows, Row{strings.TrimRight(name+" "+kind, " "), usage})
	})
	printRows(b, rows, width)
}

func printExits(b *strings.Builder, cmd *cobra.Command, width int) {
	var rows []Row
	for _, e := range usage.ExitsOf(cmd) {
		rows = append(rows, Row{"  " + e.Code, e.Meaning})
	}
	if rows != nil {
		b.WriteString("\nExit codes:\n")
		printRows(b, rows, width)
	}
}

// Describe returns a flag's kind and its usage with the default.
func Describe(f *pflag.Flag) (kind, usage string) {
	kind, usage = pflag.UnquoteUsage(f)
	if d := f.DefValue; d != "" && d != "0" && d != "false" {
		usage += " (default " + d + ")"
	}
	return kind, usage
}

// Row is a name and its description.
type Row struct{ Name, Text string }

// printRows prints two columns: the second is wrapped to the width, or below the first if the width is too
// small.
func printRows(b *strings.Builder, rows []Row, width int) {
	const between, minText, below = 2, 24, 10
	indent := 0
	for _, r := range rows {
		indent = max(indent, len(r.Name)+between)
	}
	isBeside := width-indent >= minText
	if !isBeside {
		indent = below
	}
	for _, r := range rows {
		text := strings.ReplaceAll(usage.Wrap(r.Text, width-indent), "\n", "\n"+strings.Repeat(" ", indent))
		switch {
		case text == "":
			b.WriteString(r.Name + "\n")
		case isBeside:
			fmt.Fprintf(b, "%-*s%s\n", indent, r.Name, text)
		default:
			fmt.Fprintf(b, "%s\n%*s%s\n", r.Name, indent, "", text)
		}
	}
}

const durationNote = `A time is written as 30s, 1m30s or 500ms, or as seconds: 30 or 0.5. Those that are milliseconds in Redis (--lua-time-limit,
--store-timeout) require a unit.`

// settingsNote explains the other ways to set flags, and how times are written.
func settingsNote(cmd *cobra.Command, groups []settings.FlagGroup) string {
	flag := firstSetting(groups)
	switch {
	case flag == "":
		return ""
	case cmd.HasParent():
		return "Every flag can also be set by an environment variable: --" + flag + " by " + settings.EnvName(flag) + "."
	}
	return "Every flag can also be set by an environment variable, --" + flag + " by " + settings.EnvName(flag) + ", and in the config file, by " + flag +
		"; a flag overrides a variable, and a variable the file.\n\n" + durationNote
}

func firstSetting(groups []settings.FlagGroup) (name string) {
	for _, g := range groups {
		g.Flags.VisitAll(func(f *pflag.Flag) {
			if name == "" && settings.IsSetting(f) && !f.Hidden {
				name = f.Name
			}
		})
	}
	return name
}

func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "show the help of a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			topic := cmd.Root()
			for _, name := range args {
				below := subcommand(topic, name)
				if below == nil {
					return unknownCommand(topic, name)
				}
				topic = below
			}
			topic.HelpFunc()(topic, nil)
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
			topic := cmd.Root()
			for _, name := range args {
				if topic = subcommand(topic, name); topic == nil {
					return nil, cobra.ShellCompDirectiveNoFileComp
				}
			}
			for _, below := range topic.Commands() {
				if below.IsAvailableCommand() {
					names = append(names, cobra.CompletionWithDesc(below.Name(), below.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

func subcommand(parent *cobra.Command, name string) *cobra.Command {
	for _, below := range parent.Commands() {
		if below.Name() == name {
			return below
		}
	}
	return nil
}
