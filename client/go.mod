module atelier/client

go 1.26.0
