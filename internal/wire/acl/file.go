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
	// Added, Removed and Changed are the names of the users that are new, are gone, or have other rules than before.
	Added, Removed, Changed []string
	// Ignored are the commands in the rules that Redis has and this server does not.
	Ignored []string
	// First says that no file had been loaded before.
	First bool
	// Opened says that clients may execute commands without a password, and could not before or this is the first file.
	Opened bool
}

// LoadFile replaces all users by those of an aclfile, or none if it has an error. A line is `user NAME rule...` or empty; as in
// Redis, there are no comments. The error is a *FileError.
//
// On ACL LOAD, Redis 7.0 closes the connections of every user but the default one, even if nothing has changed. Here only
// those of users that are removed or changed should be closed.
//
// If the file does not contain the default user, that user is as without a file, with the password of SetDefaultPassword.
// In Redis it is then open to everyone, whatever requirepass says. Only the first file may let clients in by what it does
// not contain: a later one may be in the middle of being written.
func (u *Users) LoadFile(path string) (Loaded, error) {
	text, err := ReadFile(path)
	if err != nil {
		return Loaded{}, err
	}
	return u.Load(path, text)
}

// ReadFile returns what an aclfile has, for Load. It may take seconds, as smallfile.Read does. The error is a
// *FileError.
func ReadFile(path string) (text string, err error) {
	data, err := smallfile.Read(path)
	if err != nil {
		text := "Error loading ACLs, opening file '" + path + "': " + smallfile.Cause(err).Error()
		return "", &FileError{text: text, cause: err}
	}
	return string(data), nil
}

// Load is LoadFile for a file that has been read.
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
		problem = " does not end with a newline, as it did, so it may be in the middle of being written: end its last line"
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

// lettingInLocked says what is wrong with a file that would let clients in by what is missing in it.
func (u *Users) lettingInLocked(sets map[string]*ruleSet) (problem string) {
	before := u.byName[DefaultName].rules.Load()
	const remedy = "write 'user default off' or, to let everyone in, 'user default on nopass ~* &* +@all'"
	switch {
	case !u.loaded:
		return ""
	case len(sets) == 0 && len(u.byName) > 1:
		return " has no user, and the present ones would be gone: if that is meant, " + remedy
	case sets[DefaultName] != nil, before.unrestricted && before.noPassword, before.description.line == u.open.description.line:
		return ""
	case u.open.noPassword:
		return " has no user default, as whom clients could then do everything without a password: " + remedy
	}
	return " has no user default, as whom clients could then do everything with the password of --requirepass: " + remedy
}

// replaceLocked replaces the users.
func (u *Users) replaceLocked(sets map[string]*ruleSet) Loaded {
	loaded := Loaded{First: !u.loaded}
	wasOpen := u.byName[DefaultName].rules.Load().open()
	if sets[DefaultName] == nil {
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

// open reports whether anyone may execute the user's commands: no password is required.
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
	reported := false // the first error that is not about a name may cause others
	f.rules.applyAll(set, words[2:], func(rule string, err error) {
		switch {
		case errors.Is(err, errUnknownName): // the rule is shown only here, where it is not a password
			f.fail(at + ": Error in applying operation '" + printable(rule) + "': " + err.Error())
		case !reported:
			reported = true
			f.fail(at + ": " + err.Error())
		}
	})
	f.users[name] = f.rules.finish(set)
}

func (f *fileReader) fail(problem string) { f.problems = append(f.problems, problem) }
