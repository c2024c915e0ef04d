"""Object stores: files are objects whose keys look like paths; what is put is there whole or not at all."""
