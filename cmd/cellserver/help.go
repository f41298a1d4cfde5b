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
	about := cmd.Long
	if about == "" {
		about = strings.ToUpper(cmd.Short[:1]) + cmd.Short[1:] + "."
	}
	fmt.Fprintf(&b, "%s\n\nUsage:\n", wrap(about, width))
	printUsage(&b, cmd)
	groups := []flagGroup{{"Flags", cmd.Flags()}}
	if !cmd.HasParent() {
		groups = p.groups
	}
	for _, g := range groups {
		fmt.Fprintf(&b, "\n%s:\n%s", g.title, g.flags.FlagUsagesWrapped(width))
	}
	if flag := firstSetting(groups); flag != "" {
		fmt.Fprintf(&b, "\n%s\n", wrap("Every flag can also be set by an environment variable: --"+flag+" by "+envName(flag)+".", width))
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

// printUsage prints the ways to call a command and those below it.
func printUsage(w io.Writer, cmd *cobra.Command) {
	type line struct{ use, short string }
	var lines []line
	if cmd.Runnable() {
		lines = append(lines, line{use: cmd.UseLine()})
	}
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() || below.Name() == "help" {
			lines = append(lines, line{below.UseLine(), below.Short})
		}
	}
	if len(lines) > 1 && cmd.Runnable() {
		lines[0].short = cmd.Short
	}
	longest := 0
	for _, l := range lines {
		longest = max(longest, len(l.use))
	}
	for _, l := range lines {
		_, _ = fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("  %-*s  %s", longest, l.use, l.short), " "))
	}
}

// firstSetting returns the name of the first flag that a variable sets.
func firstSetting(groups []flagGroup) (name string) {
	for _, g := range groups {
		g.flags.VisitAll(func(f *pflag.Flag) {
			if name == "" && isSetting(f) {
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
		if strings.HasPrefix(p, " ") || strings.Contains(p, "\n ") {
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

func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "show the help of a command",
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
