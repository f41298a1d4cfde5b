package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"cellserver/internal/app/settings"
	"cellserver/internal/base/wrap"
)

// The width of help: that of the terminal, within bounds.
const (
	leastHelpWidth = 30
	mostHelpWidth  = 120
	plainHelpWidth = 100 // where there is no terminal
)

// helpPrinter prints the help of each command.
type helpPrinter struct {
	groups []settings.FlagGroup // of the root
	err    error                // of the last help that could not be printed
}

// print is cobra's help function.
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
	return min(max(width-1, leastHelpWidth), mostHelpWidth) // a full line would leave the cursor on the next
}

func (p *helpPrinter) text(cmd *cobra.Command, width int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage:\n", wrap.Text(about(cmd), width))
	printUsage(&b, cmd, width)
	groups := p.groupsOf(cmd)
	for _, g := range groups {
		b.WriteString("\n" + g.Title + ":\n")
		printFlags(&b, g.Flags, width)
	}
	if note := settingsNote(cmd, groups); note != "" {
		fmt.Fprintf(&b, "\n%s\n", wrap.Text(note, width))
	}
	if cmd.Example != "" {
		title := "Example"
		if strings.Contains(cmd.Example, "\n  cellserver ") {
			title = "Examples"
		}
		fmt.Fprintf(&b, "\n%s:\n%s\n", title, cmd.Example)
	}
	return b.String()
}

// about is what a command's help says first.
func about(cmd *cobra.Command) string {
	if cmd.Long == "" {
		return strings.ToUpper(cmd.Short[:1]) + cmd.Short[1:] + "."
	}
	return cmd.Long
}

// groupsOf are the flags of a command under their headings.
func (p *helpPrinter) groupsOf(cmd *cobra.Command) []settings.FlagGroup {
	if cmd.HasParent() {
		return []settings.FlagGroup{{Title: "Flags", Flags: cmd.Flags()}}
	}
	return p.groups
}

// usageLine is a way to call a command or one below it.
type usageLine struct{ use, short string }

func usageLines(cmd *cobra.Command) (lines []usageLine) {
	if !cmd.HasParent() || !cmd.HasAvailableSubCommands() {
		lines = append(lines, usageLine{use: cmd.UseLine()})
	}
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() || below.Name() == "help" {
			lines = append(lines, usageLine{below.UseLine(), below.Short})
		}
	}
	if len(lines) > 1 && !cmd.HasParent() {
		lines[0].short = cmd.Short
	}
	return lines
}

// printUsage prints the lines as a table.
func printUsage(b *strings.Builder, cmd *cobra.Command, width int) {
	var rows []row
	for _, l := range usageLines(cmd) {
		rows = append(rows, row{"  " + l.use, l.short})
	}
	printRows(b, rows, width)
}

// printFlags prints flags as a table.
func printFlags(b *strings.Builder, fs *pflag.FlagSet, width int) {
	var rows []row
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		kind, usage := describe(f)
		name := "      --" + f.Name
		if f.Shorthand != "" {
			name = "  -" + f.Shorthand + ", --" + f.Name
		}
		rows = append(rows, row{strings.TrimRight(name+" "+kind, " "), usage})
	})
	printRows(b, rows, width)
}

// describe says what a flag takes, and what it does with its default.
func describe(f *pflag.Flag) (kind, usage string) {
	kind, usage = pflag.UnquoteUsage(f)
	if d := f.DefValue; d != "" && d != "0" && d != "false" {
		usage += " (default " + d + ")"
	}
	return kind, usage
}

// row is a name, and what is said of it.
type row struct{ name, text string }

// printRows prints two columns, the second filled to a width, or below the first where there is too little room beside it.
func printRows(b *strings.Builder, rows []row, width int) {
	const between, leastText, below = 2, 24, 10
	indent := 0
	for _, r := range rows {
		indent = max(indent, len(r.name)+between)
	}
	isBeside := width-indent >= leastText
	if !isBeside {
		indent = below
	}
	for _, r := range rows {
		text := strings.ReplaceAll(wrap.Text(r.text, width-indent), "\n", "\n"+strings.Repeat(" ", indent))
		switch {
		case text == "":
			b.WriteString(r.name + "\n")
		case isBeside:
			fmt.Fprintf(b, "%-*s%s\n", indent, r.name, text)
		default:
			fmt.Fprintf(b, "%s\n%*s%s\n", r.name, indent, "", text)
		}
	}
}

const durationNote = `A time is written as 30s, 1m30s or 500ms, or as seconds: 30 or 0.5. Those that Redis has in milliseconds (--lua-time-limit,
--store-timeout) require a unit.`

// settingsNote says how else a command's flags are set, and how times are written.
func settingsNote(cmd *cobra.Command, groups []settings.FlagGroup) string {
	flag := firstSetting(groups)
	switch {
	case flag == "":
		return ""
	case cmd.HasParent():
		return "Every flag can also be set by an environment variable: --" + flag + " by " + settings.EnvName(flag) + "."
	}
	return "Every flag can also be set by an environment variable, --" + flag + " by " + settings.EnvName(flag) + ", and in the config file, by " + flag +
		"; a flag goes before a variable, and that before the file.\n\n" + durationNote
}

// firstSetting returns the name of the first flag that a variable sets.
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

// subcommand returns the one of a name, or nil.
func subcommand(parent *cobra.Command, name string) *cobra.Command {
	for _, below := range parent.Commands() {
		if below.Name() == name {
			return below
		}
	}
	return nil
}
