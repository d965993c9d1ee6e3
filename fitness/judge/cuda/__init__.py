"""Launch plans on a GPU: argument sets in device memory, plans without their source, graph timing."""
