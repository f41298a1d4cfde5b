package server

// Stats holds counters of a Server.
type Stats struct {
	Connected        int
	Accepted         uint64 // neither refused, denied nor failed in the handshake
	Refused          uint64 // over MaxClients
	RefusedAddresses uint64 // over MaxClientsPerAddress
	Denied           uint64 // by Config.Admit
	HandshakesFailed uint64 // of TLS
	Panics           uint64 // connections closed by a panic
	// Closed counts accepted connections that have ended, by the labels of conn.Reason.
	Closed         map[string]uint64
	Received, Sent uint64 // bytes on the wire
}

func (s *Server) Stats() Stats {
	bytes := s.driver.Traffic()
	return Stats{
		Connected:        int(s.connected.Load()),
		Accepted:         s.accepted.Load(),
		Refused:          s.refused.Load(),
		RefusedAddresses: s.refusedAddresses.Load(),
		Denied:           s.denied.Load(),
		HandshakesFailed: s.host.HandshakesFailed.Load(),
		Panics:           s.host.Panics.Load(),
		Closed:           s.host.Closed(),
		Received:         bytes.Received,
		Sent:             bytes.Sent,
	}
}
