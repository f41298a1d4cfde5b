package command

import (
	"fmt"
	"time"

	"cellserver/internal/resp"
)

func clientID(s *Session, _ [][]byte) error {
	s.w.Int(s.id)
	return nil
}

func clientGetName(s *Session, _ [][]byte) error {
	if s.name == "" {
		s.w.Null()
	} else {
		s.w.BulkString(s.name)
	}
	return nil
}

func clientSetName(s *Session, args [][]byte) error {
	if err := checkClientText("Client names", args[2]); err != nil {
		return err
	}
	s.name = string(args[2])
	s.w.OK()
	return nil
}

func clientSetInfo(s *Session, args [][]byte) error {
	var field *string
	attr := lower(args[2])
	switch attr {
	case "lib-name":
		field = &s.libName
	case "lib-ver":
		field = &s.libVersion
	default:
		return replyError("ERR Unrecognized option '" + resp.Printable(args[2]) + "'")
	}
	if err := checkClientText(attr, args[3]); err != nil {
		return err
	}
	*field = string(args[3])
	s.w.OK()
	return nil
}

// clientInfo replies with the fields of Redis 7.2 in its order, for clients parse them. Those that mean nothing
// here are 0, or -1 for the descriptor.
func clientInfo(s *Session, _ [][]byte) error {
	protocol, flags := 2, "N"
	if s.w.RESP3 {
		protocol = 3
	}
	if s.peer.Unix {
		flags = "U"
	}
	s.w.Verbatim(fmt.Sprintf("id=%d addr=%s laddr=%s fd=-1 name=%s age=%d idle=0 flags=%s db=%d sub=0 psub=0 ssub=0 "+
		"multi=-1 qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r "+
		"cmd=client|info user=%s redir=-1 resp=%d lib-name=%s lib-ver=%s\n",
		s.id, s.peer.Addr, s.peer.LocalAddr, s.name, int(time.Since(s.created).Seconds()), flags, s.db,
		defaultUser, protocol, s.libName, s.libVersion))
	return nil
}
