package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// The width of help: that of the terminal, within bounds.
const (
	leastHelpWidth = 40
	mostHelpWidth  = 120
	plainHelpWidth = 100 // where there is no terminal
)

// flagGroup is the flags under one heading of the help.
type flagGroup struct {
	title string
	flags *pflag.FlagSet
}

// helpPrinter prints the help of each command.
type helpPrinter struct {
	groups []flagGroup // of the root
	err    error       // of the last help that could not be printed
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
	fmt.Fprintf(&b, "%s\n\nUsage:\n", wrap(about(cmd), width))
	printUsage(&b, cmd)
	groups := p.groupsOf(cmd)
	for _, g := range groups {
		fmt.Fprintf(&b, "\n%s:\n%s", g.title, g.flags.FlagUsagesWrapped(width))
	}
	if note := settingsNote(cmd, groups); note != "" {
		fmt.Fprintf(&b, "\n%s\n", wrap(note, width))
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
func (p *helpPrinter) groupsOf(cmd *cobra.Command) []flagGroup {
	if cmd.HasParent() {
		return []flagGroup{{"Flags", cmd.Flags()}}
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
func printUsage(w io.Writer, cmd *cobra.Command) {
	longest := 0
	lines := usageLines(cmd)
	for _, l := range lines {
		longest = max(longest, len(l.use))
	}
	for _, l := range lines {
		_, _ = fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("  %-*s  %s", longest, l.use, l.short), " "))
	}
}

const durationNote = `A time is written as 30s, 1m30s or 500ms, or as seconds: 30 or 0.5. Those that Redis has in milliseconds (--lua-time-limit,
--store-timeout, --lease-time) require a unit.`

// settingsNote says how else a command's flags are set, and how times are written.
func settingsNote(cmd *cobra.Command, groups []flagGroup) string {
	flag := firstSetting(groups)
	switch {
	case flag == "":
		return ""
	case cmd.HasParent():
		return "Every flag can also be set by an environment variable: --" + flag + " by " + envName(flag) + "."
	}
	return "Every flag can also be set by an environment variable, --" + flag + " by " + envName(flag) + ", and in the config file, by " + flag +
		"; a flag goes before a variable, and that before the file.\n\n" + durationNote
}

// firstSetting returns the name of the first flag that a variable sets.
func firstSetting(groups []flagGroup) (name string) {
	for _, g := range groups {
		g.flags.VisitAll(func(f *pflag.Flag) {
			if name == "" && isSetting(f) && !f.Hidden {
				name = f.Name
			}
		})
	}
	return name
}

// wrap fills each paragraph to a width, but for those with indented lines.
func wrap(text string, width int) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if isTable(p) {
			continue
		}
		var b strings.Builder
		column := 0
		for _, word := range strings.Fields(p) {
			switch {
			case column == 0:
			case column+1+len(word) > width:
				b.WriteByte('\n')
				column = 0
			default:
				b.WriteByte(' ')
				column++
			}
			b.WriteString(word)
			column += len(word)
		}
		paragraphs[i] = b.String()
	}
	return strings.Join(paragraphs, "\n\n")
}

// isTable tells paragraphs that are not filled.
func isTable(paragraph string) bool {
	return strings.HasPrefix(paragraph, " ") || strings.Contains(paragraph, "\n ")
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
