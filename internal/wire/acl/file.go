package acl

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"cellserver/internal/base/smallfile"
)

// Loaded is the result of loading an aclfile. Its names are sorted.
type Loaded struct {
	// Added, Removed and Changed name users.
	Added, Removed, Changed []string
	// Ignored are the rules' commands that only Redis has.
	Ignored []string
	// First reports whether no file had been loaded before.
	First bool
	// Opened reports whether commands no longer require a password, or never have and this is the first file.
	Opened bool
}

// LoadFile replaces all users by those of an aclfile, or none if it has an error. A line is `user NAME
// rule...` or empty; as in Redis, there are no comments. The error is a *FileError.
//
// Callers close the connections of removed and changed users; Redis 7.0 closes those of all users but the
// default one.
//
// Without the default user in the file, that user is as without a file, with the password of
// SetDefaultPassword; in Redis it is then open to everyone, despite requirepass. Only the first file may open
// access by an omission: a later one may be incompletely written.
func (u *Users) LoadFile(path string) (Loaded, error) {
	text, err := ReadFile(path)
	if err != nil {
		return Loaded{}, err
	}
	return u.Load(path, text)
}

// ReadFile returns an aclfile's text for Load. Like smallfile.Read it may take seconds. The error is a
// *FileError.
func ReadFile(path string) (text string, err error) {
	data, err := smallfile.Read(path)
	if err != nil {
		text := "Error loading ACLs, opening file '" + path + "': " + smallfile.Cause(err).Error()
		return "", &FileError{text: text, cause: err}
	}
	return string(data), nil
}

// Load is LoadFile with the file's text.
func (u *Users) Load(path, text string) (Loaded, error) {
	f := fileReader{path: path, rules: ruleReader{catalog: u.catalog}, users: make(map[string]*ruleSet)}
	for i, line := range strings.Split(text, "\n") {
		f.readLine(i+1, strings.Trim(line, " \t\r\n"))
	}
	if f.problems != nil {
		return Loaded{}, newFileError(f.problems)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	whole := strings.HasSuffix(text, "\n")
	problem := u.lettingInLocked(f.users)
	if problem == "" && u.loadedWhole && !whole {
		problem = " has lost its final newline, so it may be incompletely written: end its last line"
	}
	if problem != "" {
		return Loaded{}, newFileError([]string{path + problem})
	}
	loaded := u.replaceLocked(f.users)
	u.loadedWhole = whole
	slices.Sort(f.rules.ignored)
	loaded.Ignored = slices.Compact(f.rules.ignored)
	return loaded, nil
}

// lettingInLocked returns the problem of a file that would open access by an omission.
func (u *Users) lettingInLocked(sets map[string]*ruleSet) (problem string) {
	before := u.byName[DefaultName].rules.Load()
	const remedy = "write 'user default off' or, to let everyone in, 'user default on nopass ~* &* +@all'"
	switch {
	case !u.loaded:
		return ""
	case len(sets) == 0 && len(u.byName) > 1:
		return " has no users, and would remove the present ones: if that is intended, " + remedy
	case sets[DefaultName] != nil, before.unrestricted && before.noPassword, before.description.line == u.open.description.line:
		return ""
	case u.open.noPassword:
		return " has no user default, as whom clients could then do everything without a password: " + remedy
	}
	return " has no user default, as whom clients could then do everything with the password of --requirepass: " + remedy
}

func (u *Users) replaceLocked(sets map[string]*ruleSet) Loaded {
	loaded := Loaded{First: !u.loaded}
	wasOpen := u.byName[DefaultName].rules.Load().open()
	if u.defaultInFile = sets[DefaultName] != nil; !u.defaultInFile {
		sets[DefaultName] = u.open
	}
	for name, user := range u.byName {
		if set := sets[name]; set == nil {
			delete(u.byName, name)
			user.rules.Store(u.catalog.finish(u.catalog.newRuleSet()))
			loaded.Removed = append(loaded.Removed, name)
		} else if set.description.line != user.Describe().line {
			loaded.Changed = append(loaded.Changed, name)
		}
	}
	for name, set := range sets {
		if u.byName[name] == nil {
			loaded.Added = append(loaded.Added, name)
		}
		u.setRulesLocked(name, set)
	}
	slices.Sort(loaded.Added)
	slices.Sort(loaded.Removed)
	slices.Sort(loaded.Changed)
	loaded.Opened = sets[DefaultName].open() && (loaded.First || !wasOpen)
	u.loaded = true
	return loaded
}

// open reports whether authentication requires no password.
func (set *ruleSet) open() bool { return set.enabled && set.noPassword }

type fileReader struct {
	path     string
	rules    ruleReader
	users    map[string]*ruleSet
	problems []string
}

func (f *fileReader) readLine(number int, line string) {
	if line == "" {
		return
	}
	at := f.path + ":" + strconv.Itoa(number)
	words := strings.Split(line, " ")
	if words[0] != "user" || len(words) < 2 {
		f.fail(at + " should start with user keyword followed by the username")
		return
	}
	name := words[1]
	switch {
	case name == "" || hasSpace(name):
		f.fail(at + ": username '" + printable(name) + "' contains invalid characters")
		return
	case f.users[name] != nil:
		f.fail("WARNING: Duplicate user '" + printable(name) + "' found on line " + strconv.Itoa(number))
		return
	case strings.Contains(line, "\x00"):
		f.fail(at + ": " + errSyntax.Error())
		return
	}
	set := f.rules.newRuleSet()
	reported := false // such an error may cause others
	f.rules.applyAll(set, words[2:], func(rule string, err error) {
		switch {
		case errors.Is(err, errUnknownName): // only such a rule is shown, as it is not a password
			f.fail(at + ": Error in applying operation '" + printable(rule) + "': " + err.Error())
		case !reported:
			reported = true
			f.fail(at + ": " + err.Error())
		}
	})
	f.users[name] = f.rules.finish(set)
}

func (f *fileReader) fail(problem string) { f.problems = append(f.problems, problem) }
