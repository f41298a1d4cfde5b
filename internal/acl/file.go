package acl

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Loaded is the result of loading an aclfile.
type Loaded struct {
	// Changed are the users that were removed or have new rules, except the default user: close their connections.
	Changed []*User
	// Ignored are the commands in the rules that Redis has and this server does not, sorted.
	Ignored []string
}

// LoadFile replaces all users by those of an aclfile, or none if it has an error. A line is `user NAME rule...` or empty; as in
// Redis, there are no comments. The error is a *FileError.
//
// On ACL LOAD, Redis 7.0 closes the connections of every user but the default one, even if nothing has changed. Here only
// those of Changed should be closed.
//
// If the file does not contain the default user, that user is as without a file, with the password of SetDefaultPassword.
// In Redis it is then open to everyone, whatever requirepass says.
func (u *Users) LoadFile(path string) (Loaded, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		text := err.Error()
		if pathError := (*fs.PathError)(nil); errors.As(err, &pathError) {
			text = pathError.Err.Error()
		}
		return Loaded{}, &FileError{text: "Error loading ACLs, opening file '" + path + "': " + text, cause: err}
	}
	return u.load(path, string(data))
}

func (u *Users) load(path, text string) (Loaded, error) {
	f := fileReader{path: path, rules: ruleReader{catalog: u.catalog}, users: make(map[string]*ruleSet)}
	for i, line := range strings.Split(text, "\n") {
		f.readLine(i+1, strings.Trim(line, " \t\r\n"))
	}
	if f.problems != nil {
		return Loaded{}, newFileError(f.problems)
	}
	slices.Sort(f.rules.ignored)
	return Loaded{Changed: u.replace(f.users), Ignored: slices.Compact(f.rules.ignored)}, nil
}

// replace replaces the users, and returns those that were removed or changed.
func (u *Users) replace(sets map[string]*ruleSet) (changed []*User) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if sets[DefaultName] == nil {
		sets[DefaultName] = u.open
	}
	for name, user := range u.byName {
		set, stays := sets[name]
		if !stays {
			delete(u.byName, name)
			user.rules.Store(u.catalog.finish(u.catalog.newRuleSet()))
		}
		if name != DefaultName && (!stays || set.description.line != user.Describe().line) {
			changed = append(changed, user)
		}
	}
	for name, set := range sets {
		u.setRulesLocked(name, set)
	}
	slices.SortFunc(changed, func(a, b *User) int { return strings.Compare(a.name, b.name) })
	return changed
}

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
