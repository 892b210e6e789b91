package api

// boardRoutes are those about boards.
func (s *Server) boardRoutes() []route { return nil }
