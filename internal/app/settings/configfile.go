package settings

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v4"

	"cellserver/internal/app/usage"
	"cellserver/internal/base/flagvalue"
	"cellserver/internal/base/smallfile"
	"cellserver/internal/base/yamlfile"
)

// ConfigFile is the file of --config: a YAML mapping of flag names to values.
type ConfigFile struct {
	path    string
	entries []configEntry
	Wrong   Problems // mistakes in it
}

type configEntry struct {
	name   string
	values []string // a list's, or one
	isList bool
	line   int
}

// readConfig reads a file. An error names each bad line; the other lines are returned.
func readConfig(path string) (*ConfigFile, error) {
	text, err := yamlfile.Read(path)
	if err != nil {
		return &ConfigFile{path: path}, fmt.Errorf("--config: %w", err)
	}
	return parseConfig(path, text)
}

func parseConfig(path string, text []byte) (*ConfigFile, error) {
	c := &ConfigFile{path: path}
	f := &yamlfile.File{Path: path}
	root := f.Root(text)
	if root == nil {
		return c, f.Err() // no setting, as in the example
	}
	names := slices.DeleteFunc(settingNames(), func(name string) bool { return name == "config" })
	f.Fields(root, "the file", func(key, value *yaml.Node) { c.read(f, names, key, value) })
	return c, f.Err()
}

func (c *ConfigFile) read(f *yamlfile.File, names []string, key, value *yaml.Node) {
	name := key.Value
	if !slices.Contains(names, name) {
		f.Fail(key, "unknown setting "+yamlfile.QuoteWord(name)+"; "+usage.Hint(name, names, nil, "cellserver --help lists them"))
		return
	}
	e := configEntry{name: name, line: key.Line}
	switch value.Kind {
	case yaml.ScalarNode:
		if value.Tag == "!!null" {
			f.Fail(key, name+` has no value; write "" for an empty one`)
			return
		}
		e.values = []string{value.Value}
	case yaml.SequenceNode:
		e.isList = true
		for _, item := range value.Content {
			if item = yamlfile.Resolve(item); item.Kind != yaml.ScalarNode {
				f.Fail(item, name+" must be a list of words")
				return
			}
			e.values = append(e.values, item.Value)
		}
	default:
		f.Fail(value, name+" must be one value, not a mapping")
		return
	}
	c.entries = append(c.entries, e)
}

// set takes the flags not yet set from the file; flags that the command lacks are skipped.
func (c *ConfigFile) set(fs *pflag.FlagSet, from Origins) (wrong Problems) {
	for _, e := range c.entries {
		f := fs.Lookup(e.name)
		if f == nil || from[e.name] != "" {
			continue
		}
		at := c.path + ":" + strconv.Itoa(e.line)
		list, ok := f.Value.(*flagvalue.List)
		var err error
		switch {
		case e.isList && !ok:
			wrong = append(wrong, fmt.Errorf("%s: %s takes one value, not a list", at, e.name))
			continue
		case e.isList:
			err = list.Replace(e.values)
		default:
			err = f.Value.Set(e.values[0])
		}
		if err != nil {
			wrong = append(wrong, flagvalue.Describe(at+": "+e.name, yamlfile.Word(strings.Join(e.values, ",")), err))
			continue
		}
		f.Changed = true
		from[e.name] = at
	}
	return wrong
}

// WarnOfReaders warns if every user of the machine can read a password in the file.
func (c *ConfigFile) WarnOfReaders(log *slog.Logger) {
	if c == nil || runtime.GOOS == "windows" {
		return
	}
	info, err := os.Stat(c.path)
	if err != nil || info.Mode().Perm()&0o004 == 0 {
		return
	}
	for _, e := range c.entries {
		if hasSecret(e.name, strings.Join(e.values, ",")) {
			log.Warn("every user of this machine can read the password in the config file; revoke that with chmod o-r, or move it to a file of its own",
				"config", c.path, "setting", e.name)
		}
	}
}

// hasSecret reports whether a setting must not be shown.
func hasSecret(name, value string) bool {
	return value != "" && (name == "requirepass" || name == "envoy-xds-headers" || name == "store" && strings.Contains(value, "@"))
}

// SplitProblems returns a file's mistakes, one per line.
func SplitProblems(err error) (wrong Problems) {
	var lines yamlfile.Problems
	if !errors.As(err, &lines) {
		return Problems{err}
	}
	for _, line := range lines {
		wrong = append(wrong, errors.New(line))
	}
	return wrong
}

// WarnOfUnknownVariables warns of variables that look like settings, such as a misspelt password. Values,
// which may be secrets, are never logged.
func WarnOfUnknownVariables(environ []string, log *slog.Logger) {
	names := settingNames()
	isVariable := func(variable string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return EnvName(name) == variable })
	}
	services := regexp.MustCompile(serviceVariables)
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, EnvPrefix) || isVariable(name) || services.MatchString(name) ||
			// set by a service, unlike an imagined setting
			strings.HasSuffix(name, "_PORT") && strings.Contains(value, "://") {
			continue
		}
		log.Warn("unknown setting " + name + " has no effect; " +
			usage.Hint(strings.TrimPrefix(name, EnvPrefix), names, EnvName, "see cellserver --help"))
	}
}

// serviceVariables matches what Kubernetes sets for services named cellserver or with that prefix, except
// _PORT.
const serviceVariables = `^CELLSERVER(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`

// EnvPrefix begins the name of each setting's variable.
const EnvPrefix = "CELLSERVER_"

// EnvName returns the variable of a flag.
func EnvName(flag string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// ReadSecret reads the file that a flag names, without a final newline; "" if the flag is unset.
func ReadSecret(flag, path, what string, log *slog.Logger) (string, error) {
	if path == "" {
		return "", nil
	}
	b, err := smallfile.Read(path)
	if err != nil {
		return "", fmt.Errorf("cannot read %s %s: %w", flag, path, smallfile.Cause(err))
	}
	if line, cut := bytes.CutSuffix(b, []byte("\n")); cut {
		b = bytes.TrimSuffix(line, []byte("\r"))
	}
	if len(b) == 0 {
		return "", fmt.Errorf("%s %s is empty; write %s into it", flag, path, what)
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o004 != 0 && runtime.GOOS != "windows" {
		log.Warn("every user of this machine can read this secret; revoke that with chmod o-r", strings.TrimPrefix(flag, "--"), path)
	}
	return string(b), nil
}

// ReadPassword reads --requirepass-file, if set.
func (o *Options) ReadPassword(log *slog.Logger) error {
	if o.requirePassFile == "" {
		return nil
	}
	password, err := ReadSecret("--requirepass-file", o.requirePassFile, "the password", log)
	o.RequirePass = password
	return err
}

// Problems are all mistakes found in the settings.
type Problems []error

// Error returns one line: the first mistake and the number of others.
func (p Problems) Error() string {
	if len(p) == 1 {
		return p[0].Error()
	}
	return fmt.Sprintf("%v (and %d more mistakes; cellserver config check with the same flags lists them)", p[0], len(p)-1)
}

// Err returns nil for no problems.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

// Origins names the source of each setting's value; defaults are absent.
type Origins map[string]string

// Of names the flag, variable or line that sets a value.
func (from Origins) Of(name string) string {
	switch by := from[name]; by {
	case "--" + name, EnvName(name):
		return by
	case "":
		return "--" + name
	default:
		return by + ": " + name
	}
}

// SetRest sets flags that the command line leaves out from the environment, and from the file of --config. It
// returns that file, with its mistakes; nil if none is named.
func SetRest(fs *pflag.FlagSet, getenv func(string) (string, bool)) (Origins, *ConfigFile, Problems) {
	from := Origins{}
	fs.Visit(func(f *pflag.Flag) { from[f.Name] = "--" + f.Name })
	wrong := setFromEnvironment(fs, from, getenv)
	path, err := fs.GetString("config")
	if err != nil || path == "" { // a command without --config
		return from, nil, wrong
	}
	file, err := readConfig(path)
	if err != nil {
		file.Wrong = SplitProblems(err)
	}
	file.Wrong = append(file.Wrong, file.set(fs, from)...)
	return from, file, wrong
}

// removedVariables refuses settings of earlier versions. Without some, a server might be open.
func removedVariables(getenv func(string) (string, bool)) (wrong Problems) {
	for _, name := range slices.Sorted(maps.Keys(usage.Removed())) {
		if value, _ := getenv(EnvName(name)); value != "" {
			wrong = append(wrong, errors.New("unknown setting "+EnvName(name)+"; "+usage.Hint(name, nil, nil, "")))
		}
	}
	return wrong
}

func setFromEnvironment(fs *pflag.FlagSet, from Origins, getenv func(string) (string, bool)) (wrong Problems) {
	fs.VisitAll(func(f *pflag.Flag) {
		value, ok := getenv(EnvName(f.Name))
		if !ok || from[f.Name] != "" || !IsSetting(f) {
			return
		}
		if err := fs.Set(f.Name, value); err != nil {
			wrong = append(wrong, flagvalue.Describe(EnvName(f.Name), value, err))
			return
		}
		from[f.Name] = EnvName(f.Name)
	})
	return wrong
}
