package cli

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cellserver/internal/app/usage"
	"cellserver/internal/base/flagvalue"
	"cellserver/internal/base/yamlfile"
	"cellserver/internal/base/zones"
	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/namedlimit/limitsfile"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter/calendar"
	"cellserver/internal/migrate/limits"
)

const limitsHelp = `Check, convert and compare files of named limits, which --limits-file names, import those of envoyproxy/ratelimit, and print keys.`

func limitsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "limits COMMAND", Short: "check, compare and import files of limits, print keys", Long: limitsHelp, Args: onlySubcommands,
		RunE: func(*cobra.Command, []string) error {
			return usage.Errorf("limits requires a command: check, convert, diff, import or key; see cellserver limits --help")
		},
	}
	cmd.AddCommand(limitsCheckCommand(), limitsConvertCommand(), limitsDiffCommand(), limitsImportCommand(), limitsKeyCommand())
	return cmd
}

const limitsCheckHelp = `Check a file of limits as a server reads it, without a server.

It prints the numbers of limits, plans and overrides, or a line FILE:LINE: PROBLEM to standard error for each problem.

With --json it prints {"file", "limits", "plans", "override_keys", "override_patterns", "problems": [{"file", "line", "text"}, ...]},
the numbers 0 if there are problems.`

type limitsFileCall struct{ wholeBursts, json bool }

func limitsCheckCommand() *cobra.Command {
	c := &limitsFileCall{}
	cmd := &cobra.Command{
		Use: "check [flags] FILE", Short: "check a file of limits", Long: limitsCheckHelp, Example: "  cellserver limits check /etc/cellserver/limits.yml",
		Args: usage.ExactlyOne("FILE"), ValidArgsFunction: completeYAML, Annotations: usage.Exits("no problems", "problems, or an error"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.check(cmd, args[0]) },
	}
	c.define(cmd.Flags())
	jsonFlag(cmd.Flags(), &c.json)
	return cmd
}

type limitsDocument struct {
	File             string   `json:"file"`
	Limits           int64    `json:"limits"`
	Plans            int64    `json:"plans"`
	OverrideKeys     int64    `json:"override_keys"`
	OverridePatterns int64    `json:"override_patterns"`
	Problems         []remark `json:"problems"`
}

func (c *limitsFileCall) check(cmd *cobra.Command, path string) error {
	d, err := readLimitsFile(cmd, path, reading(c.wholeBursts))
	var problems yamlfile.Problems
	if shown := c.json && errors.As(err, &problems); err != nil && !shown {
		return err
	}
	found := limitsDocument{File: path, Limits: int64(len(d.Limits)), Plans: int64(len(d.Plans)), Problems: remarksOf(problems)}
	found.OverrideKeys, found.OverridePatterns = countOverrides(d)
	if c.json {
		return cmp.Or(err, printJSON(cmd.OutOrStdout(), found))
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s, %s, %s, %s\n", path, counted(found.Limits, "limit"), counted(found.Plans, "plan"),
		counted(found.OverrideKeys, "override key"), counted(found.OverridePatterns, "override pattern"))
	return err
}

const limitsConvertHelp = `Write a file of limits in its newer form, with rules of any algorithm, to standard output. The file may have limits of both forms.

The server reads the result as it reads the file. Comments are left out, limits and plans are sorted by name, and keys of a limit
that have the same override are listed together.`

func limitsConvertCommand() *cobra.Command {
	c := &limitsFileCall{}
	cmd := &cobra.Command{
		Use: "convert [flags] FILE", Short: "write a file of limits in its newer form", Long: limitsConvertHelp, Example: "  cellserver limits convert limits.yml > new.yml",
		Args: usage.ExactlyOne("FILE"), ValidArgsFunction: completeYAML, Annotations: usage.Exits("it is written", "problems, or an error"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := readLimitsFile(cmd, args[0], reading(c.wholeBursts))
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(limitsfile.Text(d, reading(c.wholeBursts)))
			return err
		},
	}
	c.define(cmd.Flags())
	return cmd
}

func (c *limitsFileCall) define(flags *pflag.FlagSet) {
	flagvalue.BoolVar(flags, &c.wholeBursts, "burst-is-capacity", "read max_burst as the whole capacity, as a cellserver with this flag does")
}

// reading returns the meaning of max_burst by --burst-is-capacity.
func reading(isCapacity bool) funnel.Reading {
	if isCapacity {
		return funnel.Capacity
	}
	return funnel.Burst
}

func completeYAML(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return []cobra.Completion{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

// limitsCommandName returns such as "limits check", for errors.
func limitsCommandName(cmd *cobra.Command) string { return cmd.Parent().Name() + " " + cmd.Name() }

func readLimitsFile(cmd *cobra.Command, path string, reading funnel.Reading) (namedlimit.Definitions, error) {
	d, err := limitsfile.ReadFile(path, reading, calendar.NewSet(&calendar.Wall{}, zones.Load))
	return d, printProblems(cmd, err)
}

// printProblems prints the problems of files as lines that editors parse, and returns their number as an
// error.
func printProblems(cmd *cobra.Command, err error) error {
	var problems yamlfile.Problems
	if err == nil {
		return nil
	}
	if !errors.As(err, &problems) {
		return fmt.Errorf("%s: %w", limitsCommandName(cmd), err)
	}
	for _, problem := range problems {
		if _, err := io.WriteString(cmd.ErrOrStderr(), problem+"\n"); err != nil {
			return err
		}
	}
	return &problemsError{problems, limitsCommandName(cmd) + ": " + counted(int64(len(problems)), "problem")}
}

// problemsError has the problems that are printed, and says how many.
type problemsError struct {
	yamlfile.Problems
	text string
}

func (e *problemsError) Error() string { return e.text }
func (e *problemsError) Unwrap() error { return e.Problems }

type remark struct {
	File string `json:"file"`
	Line int    `json:"line"` // 0 without one
	Text string `json:"text"`
}

var fileLine = regexp.MustCompile(`^(.+?):([0-9]+): (.*)$`)

// remarksOf reads lines FILE:LINE: TEXT.
func remarksOf[T any](lines []T) []remark {
	all := []remark{}
	for _, l := range lines {
		text := fmt.Sprint(l)
		r := remark{Text: text}
		if parts := fileLine.FindStringSubmatch(text); parts != nil {
			r.File, r.Text = parts[1], parts[3]
			r.Line, _ = strconv.Atoi(parts[2])
		}
		all = append(all, r)
	}
	return all
}

func countOverrides(d namedlimit.Definitions) (keys, patterns int64) {
	for _, l := range d.Limits {
		for i := range l.Overrides {
			if n := len(l.Overrides[i].Keys); n > 0 {
				keys += int64(n)
			} else {
				patterns++
			}
		}
	}
	return keys, patterns
}

const limitsImportHelp = `Translate configurations of envoyproxy/ratelimit into a file of limits on standard output. The call for each limit is above it.

Constructs that are not translated, or only in part, are named on standard error, each in a line FILE:LINE: NOTE that says what to do.
The limits are written with and without notes.

With --json it prints {"limits_file": "...", "notes": [{"file", "line", "text"}, ...]}.`

const limitsImportExample = `  cellserver limits import ratelimit/config/*.yaml > limits.yml
  cellserver limits import --merge-domains --allow-notes a.yaml b.yaml > limits.yml`

// maxEnvoyFileBytes exceeds what a file of limits has room for.
const maxEnvoyFileBytes = 32 << 20

type limitsImportCall struct {
	options    envoyconfig.Options
	allowNotes bool
	json       bool
}

func limitsImportCommand() *cobra.Command {
	c := &limitsImportCall{}
	cmd := &cobra.Command{
		Use: "import [flags] FILE...", Short: "translate envoyproxy/ratelimit's configuration", Long: limitsImportHelp, Example: limitsImportExample,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage.Errorf("limits import: want at least one FILE; see %s --help", cmd.CommandPath())
			}
			return nil
		},
		Annotations:       usage.Exits("all is translated, or --allow-notes is given", "there are notes, or an error"),
		ValidArgsFunction: completeYAML,
		RunE:              c.run,
	}
	flags := cmd.Flags()
	flagvalue.BoolVar(flags, &c.options.MergeDomains, "merge-domains", "permit several files with the same domain, as MERGE_DOMAIN_CONFIG does there")
	flagvalue.BoolVar(flags, &c.allowNotes, "allow-notes", "exit with 0 even if there are notes")
	jsonFlag(flags, &c.json)
	return cmd
}

func (c *limitsImportCall) run(cmd *cobra.Command, paths []string) error {
	files := make([]envoyconfig.File, len(paths))
	for i, path := range paths {
		text, err := yamlfile.ReadUpTo(path, maxEnvoyFileBytes)
		if err != nil {
			return fmt.Errorf("limits import: %w", err)
		}
		files[i] = envoyconfig.File{Path: path, Text: text}
	}
	out, notes, err := limits.Translate(files, c.options)
	if err != nil {
		return printProblems(cmd, err)
	}
	if c.json {
		err = printJSON(cmd.OutOrStdout(), map[string]any{"limits_file": string(out), "notes": remarksOf(notes)})
	} else {
		_, err = cmd.OutOrStdout().Write(out)
	}
	if err != nil {
		return err
	}
	for _, n := range notes {
		if _, err := fmt.Fprintln(cmd.ErrOrStderr(), n); err != nil {
			return err
		}
	}
	if len(notes) == 0 || c.allowNotes {
		return nil
	}
	return errors.New("limits import: " + counted(int64(len(notes)), "construct") + " not translated, or only in part; --allow-notes accepts that")
}

const limitsDiffHelp = `Print what would change on a running server if a file of limits became its --limits-file, a line for each change.

Limits by CL.LIMIT SET that the file does not have would stay, and are not listed. Overrides by CL.LIMIT OVERRIDE would stay, too,
and hold before those of the file. Plans are listed if a limit or an override uses them. The file's max_burst is read as the server
reads it.

A rule without a name that gets another period is removed and added: its count begins empty. With a name it keeps its count.

With --json it prints {"changes": [{"limit", "key", "text"}, ...]}: limit is "" for a change of a plan, and key is there for an
override of a key; key_base64 instead if it is not UTF-8.

A user of the server needs +cl.limit +config|get, and to read all keys, which overrides name.`

const limitsDiffExample = `  cellserver limits diff limits.yml --addr 127.0.0.1:6380
  cellserver limits diff limits.yml --addr rediss://operator@limits.example:6390 --password-file password`

func limitsDiffCommand() *cobra.Command {
	addr, asJSON := defaultServer, false
	as := &account{}
	cmd := &cobra.Command{
		Use: "diff [flags] FILE", Short: "compare a file of limits with a running server", Long: limitsDiffHelp, Example: limitsDiffExample,
		Args: usage.ExactlyOne("FILE"), ValidArgsFunction: completeYAML, Annotations: usage.Exits("no changes", "changes, or an error"),
		RunE: func(cmd *cobra.Command, args []string) error { return diffLimits(cmd, args[0], addr, as, asJSON) },
	}
	addrFlags(cmd.Flags(), &addr, as)
	jsonFlag(cmd.Flags(), &asJSON)
	return cmd
}

func diffLimits(cmd *cobra.Command, path, addr string, as *account, asJSON bool) error {
	if err := refuseURL("limits diff", path, "--addr"); err != nil {
		return err
	}
	running, err := runningLimits(cmd, urlOf(addr), as)
	if err != nil {
		return failed(cmd.Context(), "limits diff", err, "not all was compared")
	}
	file, err := readLimitsFile(cmd, path, running.Reading)
	if err != nil {
		return err
	}
	changes := running.Diff(file)
	if asJSON {
		err = printJSON(cmd.OutOrStdout(), changesDocument(changes))
	} else {
		err = printChanges(cmd.OutOrStdout(), changes)
	}
	if err != nil {
		return err
	}
	if len(changes) > 0 {
		return errors.New("limits diff: " + counted(int64(len(changes)), "change"))
	}
	return nil
}

func runningLimits(cmd *cobra.Command, url string, as *account) (*limits.Running, error) {
	ctx := cmd.Context()
	s, err := openServer(ctx, "--addr", url, as, cmd.ErrOrStderr())
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return limits.Read(ctx, s)
}

func printChanges(out io.Writer, changes []limitsfile.Change) error {
	w := bufio.NewWriter(out)
	if len(changes) == 0 {
		_, _ = w.WriteString("no changes\n") // Flush returns the error
	}
	for _, c := range changes {
		text := c.Text
		if c.Key != "" {
			text = "key " + plainOrQuoted(c.Key) + strings.TrimPrefix(text, "override")
		}
		if c.Limit != "" {
			text = "limit " + c.Limit + ": " + text
		}
		_, _ = w.WriteString(text + "\n")
	}
	return w.Flush()
}

func changesDocument(changes []limitsfile.Change) any {
	type change struct {
		Limit string `json:"limit"`
		documentKey
		Text string `json:"text"`
	}
	all := []change{}
	for _, c := range changes {
		one := change{Limit: c.Limit, Text: c.Text}
		if c.Key != "" {
			one.documentKey = documentKeyOf(c.Key)
		}
		all = append(all, one)
	}
	return map[string]any{"changes": all}
}

// plainOrQuoted quotes a key that is not one printable word.
func plainOrQuoted(key string) string {
	odd := func(c rune) bool { return !unicode.IsGraphic(c) || unicode.IsSpace(c) || c == '"' }
	if !utf8.ValidString(key) || strings.ContainsFunc(key, odd) {
		return strconv.Quote(key)
	}
	return key
}
