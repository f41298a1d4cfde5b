package command

import (
	"strings"

	"cellserver/internal/acl"
	"cellserver/internal/resp"
)

func aclWhoAmI(s *Session, _ [][]byte) error {
	s.w.BulkString(s.user.Name())
	return nil
}

func (s *Session) replyStrings(texts []string) {
	s.w.Array(len(texts))
	for _, text := range texts {
		s.w.BulkString(text)
	}
}

func aclUsers(s *Session, _ [][]byte) error {
	var names []string
	for _, user := range s.engine.config.Users.All() {
		names = append(names, user.Name())
	}
	s.replyStrings(names)
	return nil
}

func aclList(s *Session, _ [][]byte) error {
	var lines []string
	for _, user := range s.engine.config.Users.All() {
		lines = append(lines, user.Line())
	}
	s.replyStrings(lines)
	return nil
}

func aclGetUser(s *Session, args [][]byte) error {
	user := s.engine.config.Users.Lookup(string(args[2]))
	if user == nil {
		s.w.Null()
		return nil
	}
	d := user.Describe()
	s.w.Map(6)
	s.w.BulkString("flags")
	s.w.Set(len(d.Flags))
	for _, flag := range d.Flags {
		s.w.BulkString(flag)
	}
	s.w.BulkString("passwords")
	s.replyStrings(d.Passwords)
	s.replyPermissions(d.Permissions)
	s.w.BulkString("selectors")
	s.w.Array(len(d.Selectors))
	for _, selector := range d.Selectors {
		s.w.Map(3)
		s.replyPermissions(selector)
	}
	return nil
}

func (s *Session) replyPermissions(p acl.Permissions) {
	s.replyPair("commands", p.Commands)
	s.replyPair("keys", p.Keys)
	s.replyPair("channels", p.Channels)
}

func aclCat(s *Session, args [][]byte) error {
	switch len(args) {
	case 2:
		s.replyStrings(s.engine.config.Users.Categories())
	case 3:
		names, ok := s.engine.config.Users.CommandsIn(string(args[2]))
		if !ok {
			return replyError("ERR Unknown category '" + resp.Printable(args[2]) + "'")
		}
		s.replyStrings(names)
	default:
		return errUnknownOrArity(args)
	}
	return nil
}

// errUnknownOrArity is what Redis replies to a subcommand with arguments too many.
func errUnknownOrArity(args [][]byte) error {
	return replyError("ERR unknown subcommand or wrong number of arguments for '" + resp.PrintableN(args[1], maxUnknownBytes) +
		"'. Try " + strings.ToUpper(lower(args[0])) + " HELP.")
}

func aclGenPass(s *Session, args [][]byte) error {
	bits := int64(acl.DefaultPasswordBits)
	switch len(args) {
	case 2:
	case 3:
		n, err := s.integer(args[2])
		if err != nil {
			return err
		}
		bits = n
	default:
		return errUnknownOrArity(args)
	}
	password, err := acl.GeneratePassword(int(max(min(bits, 1<<20), 0)))
	if err != nil {
		return replyError("ERR " + err.Error())
	}
	s.w.BulkString(password)
	return nil
}

func aclDryRun(s *Session, args [][]byte) error {
	user := s.engine.config.Users.Lookup(string(args[2]))
	if user == nil {
		return replyError("ERR User '" + resp.Printable(args[2]) + "' not found")
	}
	call := args[3:]
	r := s.engine.table.lookup(call[0])
	if r == nil || r.refusal != "" {
		return replyError("ERR Command '" + resp.Printable(call[0]) + "' not found")
	}
	if r.subs != nil && len(call) > 1 {
		if r = r.sub(call[1]); r == nil {
			return replyError("ERR Command '" + resp.Printable(call[0]) + "' not found")
		}
	}
	if !r.acceptsArity(len(call)) {
		return errArity(r)
	}
	if reason, object := deniedTo(user, r, call); reason != acl.Allowed {
		s.w.BulkString("This user has no permissions to " + dryRunText(reason, object))
		return nil
	}
	s.w.OK()
	return nil
}

func dryRunText(reason acl.Reason, object string) string {
	if reason == acl.DeniedCommand {
		return "run the '" + object + "' command"
	}
	return "access the '" + resp.Printable([]byte(object)) + "' key"
}

// aclLoad is ACL LOAD.
func aclLoad(s *Session, _ [][]byte) error {
	if s.engine.config.ACLFile == "" {
		return replyError("ERR This instance is not configured to use an ACL file. Start the server with --aclfile.")
	}
	changed, err := s.engine.loadUsers()
	if err != nil {
		return replyError("ERR " + err.Error())
	}
	s.kill(changed)
	s.w.OK()
	return nil
}

// ReloadUsers reads the ACL file again, all of it or nothing, and ends the connections of users whose rules have
// changed, as Redis does.
func (e *Engine) ReloadUsers() error {
	changed, err := e.loadUsers()
	if err != nil {
		return err
	}
	for _, c := range e.clients.all(changed) {
		c.conn.Kill()
	}
	return nil
}

// loadUsers reads the ACL file, and tells which clients have a user whose rules have changed.
func (e *Engine) loadUsers() (changed func(*client) bool, err error) {
	loaded, err := e.config.Users.LoadFile(e.config.ACLFile)
	if err != nil {
		return nil, err
	}
	if len(loaded.Ignored) > 0 {
		e.config.Log.Info("the ACL file has commands of Redis that are not here; they have no effect",
			"file", e.config.ACLFile, "commands", strings.Join(loaded.Ignored, " "))
	}
	e.config.Log.Info("users read", "file", e.config.ACLFile, "users", len(e.config.Users.All()))
	names := map[string]bool{}
	for _, user := range loaded.Changed {
		names[user.Name()] = true
	}
	return func(c *client) bool { return names[c.snapshot().user] }, nil
}

// aclLog is ACL LOG [count|RESET].
func aclLog(s *Session, args [][]byte) error {
	count := int64(10)
	switch {
	case len(args) > 3:
		return errUnknownOrArity(args)
	case len(args) == 3 && lower(args[2]) == "reset":
		s.engine.aclLog.Reset()
		s.w.OK()
		return nil
	case len(args) == 3:
		n, err := s.integer(args[2])
		if err != nil {
			return err
		}
		count = max(n, 0)
	}
	entries := s.engine.aclLog.Entries(int(min(count, acl.DefaultLogEntries)))
	nowNs := s.engine.config.Now()
	s.w.Array(len(entries))
	for i := range entries {
		s.replyLogEntry(&entries[i], nowNs)
	}
	return nil
}

func (s *Session) replyLogEntry(e *acl.LogEntry, nowNs int64) {
	s.w.Map(10)
	s.w.BulkString("count")
	s.w.Int(e.Count)
	s.replyPair("reason", e.Reason.String())
	s.replyPair("context", e.Context)
	s.replyPair("object", e.Object)
	s.replyPair("username", e.Username)
	s.w.BulkString("age-seconds")
	s.w.Double(e.AgeSeconds(nowNs))
	s.replyPair("client-info", strings.TrimSuffix(e.ClientInfo, "\n"))
	s.w.BulkString("entry-id")
	s.w.Int(e.ID)
	s.w.BulkString("timestamp-created")
	s.w.Int(e.CreatedNs / 1e6)
	s.w.BulkString("timestamp-last-updated")
	s.w.Int(e.UpdatedNs / 1e6)
}
