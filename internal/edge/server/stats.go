package server

// Stats is what a Server has counted.
type Stats struct {
	Connected        int
	Accepted         uint64 // that were neither refused nor denied, nor failed the handshake
	Refused          uint64 // over MaxClients
	RefusedAddresses uint64 // over MaxClientsPerAddress
	Denied           uint64 // by Config.Admit
	HandshakesFailed uint64 // of TLS
	Panics           uint64 // connections closed by a panic
	// Closed counts the accepted connections that have ended, by reason: client, session (QUIT, or bytes that are no
	// command), idle, handshake, input (a command half-sent), output, memory, killed, shutdown, panic or system.
	Closed         map[string]uint64
	Received, Sent uint64 // bytes on the wire
}

// Stats returns the server's figures.
func (s *Server) Stats() Stats {
	bytes := s.driver.Traffic()
	return Stats{
		Connected:        int(s.connected.Load()),
		Accepted:         s.accepted.Load(),
		Refused:          s.refused.Load(),
		RefusedAddresses: s.refusedAddresses.Load(),
		Denied:           s.denied.Load(),
		HandshakesFailed: s.host.FailedHandshakes(),
		Panics:           s.host.Panics(),
		Closed:           s.host.Closed(),
		Received:         bytes.Received,
		Sent:             bytes.Sent,
	}
}
