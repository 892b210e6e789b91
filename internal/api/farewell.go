package api

// farewellRoutes are those about what is kept of a person, and its end.
func (s *Server) farewellRoutes() []route { return nil }
