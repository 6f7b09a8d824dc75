"""Other API servers behind this one: APIServices, whether they answer, and requests that go on to them."""
