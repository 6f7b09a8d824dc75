"""Resource quotas: what an object uses of a namespace's share, and who refuses it when too little is left."""
